package tare.authzforce;

import java.io.File;
import java.util.Set;
import org.json.JSONObject;
import org.ow2.authzforce.core.pdp.impl.PdpEngineConfiguration;
import org.ow2.authzforce.core.pdp.impl.io.PdpEngineAdapters;
import org.ow2.authzforce.core.pdp.io.xacml.json.BaseXacmlJsonResultPostprocessor;
import org.ow2.authzforce.core.pdp.io.xacml.json.SingleDecisionXacmlJsonRequestPreprocessor;
import tare.Child;
import tare.Config;
import tare.Engine;

/** AuthzForce. Its own configuration, pdp.xml, is in the folder of the policies. */
public final class Main {
  private Main() {}

  public static void main(String[] args) {
    Child.run(Main::load);
  }

  private static Engine load(Config config) throws Exception {
    File file = new File(new File(config.file()).getParentFile(), "pdp.xml");
    PdpEngineConfiguration pdp = PdpEngineConfiguration.getInstance(file, null, null);
    var preprocessor = SingleDecisionXacmlJsonRequestPreprocessor.LaxVariantFactory.INSTANCE.getInstance(
        pdp.getAttributeValueFactoryRegistry(), false, pdp.isXPathEnabled(), Set.of());
    var postprocessor = new BaseXacmlJsonResultPostprocessor.DefaultFactory().getInstance(pdp.getClientRequestErrorVerbosityLevel());
    var engine = PdpEngineAdapters.newInoutAdapter(JSONObject.class, JSONObject.class, pdp, preprocessor, postprocessor);
    return request -> engine.evaluate(new JSONObject(request)).toString();
  }
}
