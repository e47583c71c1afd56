package tare;

/** A decision point in this process: a request of the XACML JSON profile in, a response of it out. It is called from many threads at once. */
@FunctionalInterface
public interface Engine {
  String decide(String request) throws Exception;

  /** Loads the policies and makes the engine ready to decide. */
  @FunctionalInterface
  interface Factory {
    Engine load(Config config) throws Exception;
  }
}
