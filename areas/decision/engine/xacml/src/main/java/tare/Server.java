package tare;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** The REST profile of XACML 3.0 with JSON: POST /services/pdp. A request that the engine refuses gets status 400 with text. */
final class Server {
  private static final String PATH = "/services/pdp";
  private static final String JSON = "application/xacml+json";
  private static final String TEXT = "text/plain; charset=utf-8";
  private static final int MAX_BODY = 1 << 20; // bytes
  private static final long DRAIN = 64 << 20; // bytes
  private static final int BACKLOG = 1024;
  // More threads than processors, since each reads and writes blockingly; few enough not to be the cost that is measured.
  private static final int THREADS = 16;

  private final Engine engine;
  private final long readyAt; // of System.nanoTime: until then the answer is 503
  private final HttpServer http;
  private final ExecutorService pool = Executors.newFixedThreadPool(THREADS);

  private Server(Config config, Engine engine) throws IOException {
    this.engine = engine;
    this.readyAt = System.nanoTime() + (long) (config.delay() * 1e9);
    int colon = config.addr().lastIndexOf(':');
    String host = config.addr().substring(0, colon).replace("[", "").replace("]", "");
    this.http = HttpServer.create();
    sharePort(http);
    http.bind(new InetSocketAddress(host, Integer.parseInt(config.addr().substring(colon + 1))), BACKLOG);
  }

  /** tare keeps the port bound, so that no other user gets it while a process is replaced. HttpServer itself has no option to share it. */
  private static void sharePort(HttpServer http) throws IOException {
    try {
      Object channel = field(field(http, "server"), "schan");
      ((ServerSocketChannel) channel).setOption(StandardSocketOptions.SO_REUSEPORT, true);
    } catch (ReflectiveOperationException e) {
      throw new IOException("this Java's HttpServer is not the one of Java 17 to 25", e);
    }
  }

  private static Object field(Object of, String name) throws ReflectiveOperationException {
    Field f = of.getClass().getDeclaredField(name);
    f.setAccessible(true);
    return f.get(of);
  }

  static Server start(Config config, Engine engine) throws IOException {
    Server s = new Server(config, engine);
    s.http.createContext(PATH, s::answer);
    s.http.setExecutor(s.pool);
    s.http.start();
    return s;
  }

  String address() {
    InetSocketAddress a = http.getAddress();
    String host = a.getAddress().getHostAddress();
    return (host.indexOf(':') >= 0 ? "[" + host + "]" : host) + ":" + a.getPort();
  }

  void stop() throws InterruptedException {
    http.stop(1);
    pool.shutdown();
    pool.awaitTermination(1, TimeUnit.SECONDS);
  }

  private void answer(HttpExchange x) throws IOException {
    byte[] body = x.getRequestBody().readNBytes(MAX_BODY + 1);
    if (!x.getRequestURI().getPath().equals(PATH)) {
      reply(x, 404, TEXT, "no such path");
    } else if (!x.getRequestMethod().equals("POST")) {
      x.getResponseHeaders().set("Allow", "POST");
      reply(x, 405, TEXT, "only POST is answered");
    } else if (System.nanoTime() - readyAt < 0) {
      reply(x, 503, TEXT, "not ready");
    } else if (body.length > MAX_BODY) {
      // What is left unread would reset the connection, and the caller might never see the answer.
      x.getRequestBody().skip(DRAIN);
      x.getResponseHeaders().set("Connection", "close");
      reply(x, 413, TEXT, "the request is larger than " + MAX_BODY + " bytes");
    } else {
      decide(x, new String(body, StandardCharsets.UTF_8));
    }
  }

  private void decide(HttpExchange x, String request) throws IOException {
    String response;
    try {
      response = engine.decide(request);
    } catch (Exception | StackOverflowError e) { // a deeply nested request must not end a thread of the pool
      reply(x, 400, TEXT, "the request was refused: " + e);
      return;
    }
    reply(x, 200, JSON, response);
  }

  private static void reply(HttpExchange x, int status, String type, String text) throws IOException {
    byte[] out = text.getBytes(StandardCharsets.UTF_8);
    x.getResponseHeaders().set("Content-Type", type);
    x.sendResponseHeaders(status, out.length);
    try (OutputStream o = x.getResponseBody()) {
      o.write(out);
    }
  }
}
