package servers

import (
	"fmt"
	"path/filepath"
	"strings"

	"tare/internal/limit"
	"tare/internal/signature"
)

// collectorBound is a JVM whose heap has room for what it keeps and for the garbage of a few calls. Each full
// collection stops it for longer than these calls take.
func collectorBound() Fixture {
	return Fixture{
		Name: "collector-behind-pool",
		Truth: Truth{
			Rate: 400, AtMost: true, Formula: "a pool of 4 ÷ 10 ms; every 4 calls fill a heap, of which 60 MB are kept",
			Classes: classes(signature.Queue, signature.Pauses),
			Limits:  limits(limit.Collector), Seen: true,
		},
		build: func(*rig) part { return serve },
		proxy: &proxy{
			program: "java", pkg: "openjdk-17-jre-headless, with the module jdk.compiler",
			args: func(dir string) []string {
				return []string{
					"-Xmx72m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "--source", "17", filepath.Join(dir, "java.conf"),
				}
			},
			config: func(_, front, _ string) string {
				return fmt.Sprintf(jvmServer, front[strings.LastIndexByte(front, ':')+1:], good.body)
			},
		},
	}
}

// jvmServer is the program of the JVM, for a port and the body of an answer.
const jvmServer = `
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

class Server {
	static byte[][] kept = new byte[60_000][];
	static volatile byte[] garbage;

	public static void main(String[] none) throws Exception {
		for (int i = 0; i < kept.length; i++) {
			kept[i] = new byte[1000];
		}
		byte[] body = %[2]q.getBytes();
		HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", %[1]s), 4096);
		server.setExecutor(Executors.newFixedThreadPool(4));
		server.createContext("/", call -> {
			try {
				Thread.sleep(10);
			} catch (InterruptedException e) {
				throw new RuntimeException(e);
			}
			for (int i = 0; i < 2000; i++) {
				garbage = new byte[1000];
			}
			call.getResponseHeaders().set("Content-Type", "application/json");
			call.sendResponseHeaders(200, body.length);
			call.getResponseBody().write(body);
			call.close();
		});
		server.start();
	}
}
`
