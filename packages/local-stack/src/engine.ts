/**
 * Runs a ClickHouse server inside this process, from the shared library of chdb (an embeddable ClickHouse).
 *
 * Usage: `node engine.js LIBRARY MIN_FREE_BYTES [clickhouse-local option]...`, in the data directory.
 *
 * The engine needs a process of its own, because the call into the library blocks until the server ends. The server shuts down at the end
 * of its standard input, so it also ends if its parent process is killed.
 *
 * A worker thread kills the process in two cases: if the parent is gone but the engine does not end, and before the disk is full. The
 * second case is necessary because chdb removes ClickHouse's check for failed writes. On a full disk, a merge of data files would write an
 * empty file, which would replace the merged ones (docs/decisions/0026).
 */
import { statfsSync, writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isMainThread, Worker } from 'node:worker_threads';
import { DataType, load, open } from 'ffi-rs';

const UNTIL_INPUT_ENDS = "SELECT * FROM file('stdin', LineAsString, 'x String') FORMAT Null";
const PARENT_POLL_MS = 500;
/** Time for a clean shutdown. A shutdown waits 5 s for idle connections. */
const SHUTDOWN_MS = 10_000;
/** Short enough for a fast disk: at 1 GB/s, a disk fills by 50 MB between two checks. */
const SPACE_POLL_MS = 50;
const MEBIBYTE = 1024 * 1024;
const STANDARD_ERROR = 2;

const [library = '', minFreeBytes = '0', ...options] = process.argv.slice(2);
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

function requireFreeSpace(): void {
  const { bavail, bsize } = statfsSync(process.cwd());
  const free = bavail * bsize;
  if (free >= Number(minFreeBytes)) return;
  const [left, needed] = [free, Number(minFreeBytes)].map((bytes) => Math.floor(bytes / MEBIBYTE));
  // In a worker thread, console.error would need the main thread, which the engine blocks. writeSync does not.
  writeSync(
    STANDARD_ERROR,
    `The disk of ${process.cwd()} has ${left} MiB left. The embedded ClickHouse needs ${needed} MiB and stops to prevent data loss. Free some space.\n`,
  );
  process.kill(process.pid, 'SIGKILL');
}
