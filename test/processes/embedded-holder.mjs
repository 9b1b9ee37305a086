// Opens the embedded server of a data folder and holds it until a line arrives on standard input.
// Prints one JSON line when it is open (or why it is not), and another when it has left.
// Arguments: the data folder, and optionally the package that has the binaries.
import { once } from "node:events";
import { startEmbedded } from "../../dist/store/postgres/embedded.js";

const [dataDir, binariesPackage] = process.argv.slice(2);
const say = (message) => console.log(JSON.stringify(message));

try {
  const started = performance.now();
  const server = await startEmbedded({ dataDir, ...(binariesPackage && { binariesPackage }) });
  const { url, version, joined } = server;
  say({ url, version, joined, milliseconds: Math.round(performance.now() - started) });
  await once(process.stdin, "data");
  await server.stop();
  say({ stopped: true });
  process.exit(0);
} catch (error) {
  say({ code: error.code, message: error.message });
  process.exit(1);
}
