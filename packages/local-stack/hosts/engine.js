/**
 * Runs a ClickHouse server inside this process, from chdb's shared library.
 *
 * Usage: `node engine.js LIBRARY [clickhouse-local option]...`
 *
 * A process of its own because the call blocks for as long as the server runs. The server reads its standard input
 * to the end and then shuts down, so it ends with the process that holds the other end, even if that one is killed.
 * An engine that has crashed may hang and read no more; the watchdog sees to that case.
 */
import { Worker } from 'node:worker_threads';
import { DataType, load, open } from 'ffi-rs';

const LISTEN_UNTIL_INPUT_ENDS =
  "SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP; SELECT * FROM file('stdin', LineAsString, 'x String') FORMAT Null";

/** Runs beside the blocked main thread. Longer than a clean shutdown takes, which waits 5 s for idle connections. */
const WATCHDOG = `
  const parent = ${process.ppid};
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), 10_000);
  }, 500);`;

const [library = '', ...options] = process.argv.slice(2);
const argv = ['clickhouse', ...options, '--query', LISTEN_UNTIL_INPUT_ENDS];

new Worker(WATCHDOG, { eval: true }).unref();
open({ library: 'chdb', path: library });
load({
  library: 'chdb',
  funcName: 'query_stable',
  retType: DataType.External,
  paramsType: [DataType.I32, DataType.StringArray],
  paramsValue: [argv.length, argv],
});
