package tare;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * The child's side of the protocol between tare and its servers: a line of JSON on standard input says what to serve, a line on standard output
 * says that it serves, and the process ends when standard input does, that is, however the parent ends.
 */
public final class Child {
  private Child() {}

  public static void run(Engine.Factory factory) {
    PrintStream answers = System.out;
    System.setOut(System.err); // a library that prints must not be taken for us
    Logger.getLogger("").setLevel(Level.WARNING);
    try {
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      String line = in.readLine();
      if (line == null) {
        throw new IOException("no config on standard input; this program is started by tare itself, not by hand");
      }
      Config config = Config.parse(line);
      long began = System.nanoTime();
      Engine engine = factory.load(config);
      double seconds = (System.nanoTime() - began) / 1e9;
      Server server = Server.start(config, Planted.in(engine, config));
      answers.printf(Locale.ROOT, "{\"ready\":{\"addr\":\"%s\",\"load_seconds\":%.6f}}%n", server.address(), seconds);
      answers.flush();
      while (in.read() >= 0) {
        // the parent has nothing more to say: the end is what is waited for
      }
      server.stop();
      System.exit(0);
    } catch (Throwable t) {
      t.printStackTrace();
      System.exit(1);
    }
  }
}
