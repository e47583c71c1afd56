package tare;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Faults that are planted to prove that they are found. The engine decides all the same: a fault changes the answer and not what it costs. */
final class Planted {
  private static final String OK = "urn:oasis:names:tc:xacml:1.0:status:ok";
  private static final String FAILED = "urn:oasis:names:tc:xacml:1.0:status:processing-error";

  private Planted() {}

  static Engine in(Engine engine, Config config) {
    if (config.leak() > 0) {
      leak(config.leak());
    }
    switch (config.answer()) {
      case "":
        return engine;
      case "always-permit":
        return request -> instead(engine, request, "Permit", OK);
      case "indeterminate":
        return request -> instead(engine, request, "Indeterminate", FAILED);
      case "not-applicable-as-permit":
        return request -> engine.decide(request).replace("\"NotApplicable\"", "\"Permit\"");
      default:
        throw new IllegalArgumentException("planted answer \"" + config.answer() + "\" is none of always-permit, indeterminate, not-applicable-as-permit");
    }
  }

  private static String instead(Engine engine, String request, String decision, String status) throws Exception {
    engine.decide(request);
    return "{\"Response\":[{\"Decision\":\"" + decision + "\",\"Status\":{\"StatusCode\":{\"Value\":\"" + status + "\"}}}]}";
  }

  /** Keeps further bytes every second for ever. They are outside of the heap, where they show in the process's memory at once. */
  private static void leak(double bytesPerSecond) {
    List<ByteBuffer> kept = new ArrayList<>();
    Thread thread = new Thread(() -> {
      long began = System.nanoTime();
      long have = 0;
      while (true) {
        try {
          Thread.sleep(100);
        } catch (InterruptedException e) {
          return;
        }
        long due = (long) (bytesPerSecond * (System.nanoTime() - began) / 1e9);
        if (due - have >= 4096) {
          kept.add(ByteBuffer.allocateDirect((int) Math.min(due - have, 64 << 20))); // zeroed, and so touched
          have += kept.get(kept.size() - 1).capacity();
        }
      }
    }, "planted-leak");
    thread.setDaemon(true);
    thread.start();
  }
}
