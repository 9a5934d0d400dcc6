/**
 * Runs a ClickHouse server inside this process, from chdb's shared library.
 *
 * Usage: `node engine.js LIBRARY LEAST_FREE_BYTES CONFIG USERS [clickhouse-local option]...`, in the directory of its data, with
 * the files of the configuration and of the users.
 *
 * A process of its own because the call blocks for as long as the server runs. The server reads its standard input
 * to the end and then shuts down, so it ends with the process that holds the other end, even if that one is killed.
 * An engine that has crashed may hang and read no more, and one on a full disk corrupts its data; the watchdog ends both.
 *
 * The engine can open no file but these, where the system can see to it: `INSERT … FROM INFILE` would read any file of the
 * user that runs it, for everybody who may insert.
 */
import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { DataType, load, open } from 'ffi-rs';
import { limitFileAccess } from './file-access.js';
import { requireFreeSpace } from './free-space.js';

const UNTIL_INPUT_ENDS = "SELECT * FROM file('stdin', LineAsString, 'x String') FORMAT Null";

/** What the engine and the C library read of the system: nothing that is a secret, as long as no variable is one. */
const OF_SYSTEM = [
  ...['self', 'meminfo', 'cpuinfo', 'stat', 'sys'].map((name) => `/proc/${name}`),
  ...['/sys', '/dev/urandom', '/usr', '/lib', '/lib64'],
  ...['hosts', 'resolv.conf', 'nsswitch.conf', 'host.conf', 'gai.conf', 'localtime'].map((name) => `/etc/${name}`),
].filter((path) => existsSync(path));

/** ClickHouse adds to a file what is in a directory of that name, if there is one. */
const withMore = (file) => [file.replace(/\.xml$/, '.d')].filter((path) => existsSync(path));

const [library = '', leastFreeBytes = '0', config = '', users = '', ...options] = process.argv.slice(2);
const data = process.cwd();
const protocols = options.includes('--tcp_port') ? ['HTTP', 'TCP'] : ['HTTP'];
const statements = [...protocols.map((protocol) => `SYSTEM START LISTEN ${protocol}`), UNTIL_INPUT_ENDS].join('; ');
const argv = ['clickhouse', '--path', data, '--config-file', config, ...options, '--query', statements];

requireFreeSpace(data, Number(leastFreeBytes));
new Worker(new URL('./engine-watchdog.js', import.meta.url), {
  workerData: { parent: process.ppid, directory: data, leastFreeBytes: Number(leastFreeBytes) },
}).unref();
open({ library: 'chdb', path: library });
const own = [process.execPath, library, config, users, ...withMore(config), ...withMore(users)];
limitFileAccess({ readable: [...OF_SYSTEM, ...own], writable: [data, '/dev/null'] });
load({
  library: 'chdb',
  funcName: 'query_stable',
  retType: DataType.External,
  paramsType: [DataType.I32, DataType.StringArray],
  paramsValue: [argv.length, argv],
});
