package tare;

import java.util.HashMap;
import java.util.Map;

/** What the parent says on standard input: one line, a flat JSON object. It is read here, since the engines share no JSON library. */
public record Config(String addr, String file, boolean own, String answer, double leak, double delay) {

  static Config parse(String line) {
    Map<String, String> fields = new Reader(line).object();
    return new Config(
        fields.getOrDefault("addr", "127.0.0.1:0"),
        fields.getOrDefault("file", ""),
        Boolean.parseBoolean(fields.getOrDefault("own", "false")),
        fields.getOrDefault("answer", ""),
        Double.parseDouble(fields.getOrDefault("leak", "0")),
        Double.parseDouble(fields.getOrDefault("delay", "0")));
  }

  /** Reads strings and plain words (numbers, true, false, null); anything nested is an error. */
  private static final class Reader {
    private final String text;
    private int at;

    Reader(String text) {
      this.text = text;
    }

    Map<String, String> object() {
      Map<String, String> fields = new HashMap<>();
      expect('{');
      if (peek() == '}') {
        return fields;
      }
      while (true) {
        String name = string();
        expect(':');
        fields.put(name, peek() == '"' ? string() : word());
        if (peek() == '}') {
          return fields;
        }
        expect(',');
      }
    }

    private char peek() {
      while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
        at++;
      }
      if (at == text.length()) {
        throw new IllegalArgumentException("the config ends early");
      }
      return text.charAt(at);
    }

    private void expect(char c) {
      if (peek() != c) {
        throw new IllegalArgumentException("the config has '" + peek() + "' at " + at + " where '" + c + "' should be");
      }
      at++;
    }

    private String word() {
      int from = at;
      while (at < text.length() && ",} \t".indexOf(text.charAt(at)) < 0) {
        at++;
      }
      if (text.charAt(from) == '{' || text.charAt(from) == '[') {
        throw new IllegalArgumentException("the config holds a nested value at " + from);
      }
      return text.substring(from, at);
    }

    private String string() {
      expect('"');
      StringBuilder out = new StringBuilder();
      while (at < text.length()) {
        char c = text.charAt(at++);
        if (c == '"') {
          return out.toString();
        }
        out.append(c == '\\' ? escaped() : c);
      }
      throw new IllegalArgumentException("the config ends in a string");
    }

    private char escaped() {
      char c = text.charAt(at++);
      switch (c) {
        case 'n':
          return '\n';
        case 't':
          return '\t';
        case 'r':
          return '\r';
        case 'b':
          return '\b';
        case 'f':
          return '\f';
        case 'u':
          at += 4;
          return (char) Integer.parseInt(text.substring(at - 4, at), 16);
        default:
          return c;
      }
    }
  }
}
