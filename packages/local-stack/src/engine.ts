/**
 * Runs a ClickHouse server inside this process, from chdb's shared library.
 *
 * Usage: `node engine.js LIBRARY LEAST_FREE_BYTES [clickhouse-local option]...`, in the directory of its data.
 *
 * A process of its own because the call blocks for as long as the server runs. The server reads its standard input to the end and then
 * shuts down, so it ends with the process that holds the other end, even if that one is killed. A worker thread beside it ends the
 * process when the engine has crashed and hangs, and before its disk is full: the engine does not notice that a write has failed, because
 * chdb takes ClickHouse's error out, so a part that a full disk left empty would replace the parts that it was merged from
 * (docs/decisions/0026).
 */
import { statfsSync, writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isMainThread, Worker } from 'node:worker_threads';
import { DataType, load, open } from 'ffi-rs';

const UNTIL_INPUT_ENDS = "SELECT * FROM file('stdin', LineAsString, 'x String') FORMAT Null";
const PARENT_POLL_MS = 500;
/** Longer than a clean shutdown takes, which waits 5 s for idle connections. */
const SHUTDOWN_MS = 10_000;
/** A disk that writes 1 GB a second fills 50 MB between two looks. */
const SPACE_POLL_MS = 50;
const MEBIBYTE = 1024 * 1024;
const STANDARD_ERROR = 2;

const [library = '', leastFreeBytes = '0', ...options] = process.argv.slice(2);
if (isMainThread) runServer();
else watch();

function runServer(): void {
  requireFreeSpace();
  new Worker(fileURLToPath(import.meta.url), { argv: process.argv.slice(2) }).unref();
  const protocols = options.includes('--tcp_port') ? ['HTTP', 'TCP'] : ['HTTP'];
  const statements = [...protocols.map((protocol) => `SYSTEM START LISTEN ${protocol}`), UNTIL_INPUT_ENDS].join('; ');
  const argv = ['clickhouse', '--path', process.cwd(), ...options, '--query', statements];
  open({ library: 'chdb', path: library });
  load({
    library: 'chdb',
    funcName: 'query_stable',
    retType: DataType.External,
    paramsType: [DataType.I32, DataType.StringArray],
    paramsValue: [argv.length, argv],
  });
}

function watch(): void {
  const parent = process.ppid;
  const watchParent = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watchParent);
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), SHUTDOWN_MS);
  }, PARENT_POLL_MS);
  setInterval(requireFreeSpace, SPACE_POLL_MS);
}

/** Ends this process, as a crash would, unless its disk has so much space left. */
function requireFreeSpace(): void {
  const { bavail, bsize } = statfsSync(process.cwd());
  const free = bavail * bsize;
  if (free >= Number(leastFreeBytes)) return;
  const [left, least] = [free, Number(leastFreeBytes)].map((bytes) => Math.floor(bytes / MEBIBYTE));
  // Not console.error: in a worker its lines wait for the main thread, which the engine blocks.
  writeSync(
    STANDARD_ERROR,
    `The disk of ${process.cwd()} has ${left} MiB left. The embedded ClickHouse needs ${least} MiB: it stops, so that nothing is lost. Free some space.\n`,
  );
  process.kill(process.pid, 'SIGKILL');
}
