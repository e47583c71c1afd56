package tare.att;

import com.att.research.xacml.api.pdp.PDPEngine;
import com.att.research.xacml.std.json.JsonRequestTranslator;
import com.att.research.xacml.std.json.JsonResponseTranslator;
import com.att.research.xacmlatt.pdp.ATTPDPEngineFactory;
import java.util.Properties;
import tare.Child;
import tare.Config;
import tare.Engine;

/** AT&T XACML, the engine inside ONAP's policy decision point. */
public final class Main {
  private static final String FIRST = "{\"Request\":{\"Category\":[{\"CategoryId\":\"urn:oasis:names:tc:xacml:3.0:attribute-category:action\","
      + "\"Attribute\":[{\"AttributeId\":\"urn:oasis:names:tc:xacml:1.0:action:action-id\",\"Value\":\"none\"}]}]}}";

  private Main() {}

  public static void main(String[] args) {
    Child.run(Main::load);
  }

  private static Engine load(Config config) throws Exception {
    PDPEngine engine = new ATTPDPEngineFactory().newEngine(properties(config.file()));
    Engine json = request -> JsonResponseTranslator.toString(engine.decide(JsonRequestTranslator.load(request)), false);
    // The engine reads its policies with the first request; that is loading, and no request of a caller. Policies that it cannot read
    // it only logs, and is Indeterminate from then on. So may those of the user be about a request that they are not made for.
    String answer = json.decide(FIRST);
    if (!config.own() && answer.contains("\"Indeterminate\"")) {
      throw new IllegalArgumentException("the policies in " + config.file() + " cannot be read: " + answer);
    }
    return json;
  }

  /** The factories are the library's own; it has no defaults for them. */
  private static Properties properties(String policies) {
    Properties p = new Properties();
    p.setProperty("xacml.dataTypeFactory", "com.att.research.xacml.std.StdDataTypeFactory");
    p.setProperty("xacml.pdpEngineFactory", "com.att.research.xacmlatt.pdp.ATTPDPEngineFactory");
    p.setProperty("xacml.pepEngineFactory", "com.att.research.xacml.std.pep.StdEngineFactory");
    p.setProperty("xacml.pipFinderFactory", "com.att.research.xacml.std.pip.StdPIPFinderFactory");
    p.setProperty("xacml.traceEngineFactory", "com.att.research.xacml.std.trace.NullTraceEngineFactory");
    p.setProperty("xacml.att.evaluationContextFactory", "com.att.research.xacmlatt.pdp.std.StdEvaluationContextFactory");
    p.setProperty("xacml.att.combiningAlgorithmFactory", "com.att.research.xacmlatt.pdp.std.StdCombiningAlgorithmFactory");
    p.setProperty("xacml.att.functionDefinitionFactory", "com.att.research.xacmlatt.pdp.std.StdFunctionDefinitionFactory");
    p.setProperty("xacml.att.policyFinderFactory", "com.att.research.xacmlatt.pdp.std.StdPolicyFinderFactory");
    p.setProperty("xacml.rootPolicies", "root");
    p.setProperty("root.file", policies);
    p.setProperty("xacml.referencedPolicies", "");
    return p;
  }
}
