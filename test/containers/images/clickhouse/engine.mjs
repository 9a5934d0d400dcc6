import { createRequire } from 'node:module';
import { DataType, load, open } from 'ffi-rs';

const library = createRequire(import.meta.url).resolve('@chdb/lib-linux-x64-gnu/libchdb.so');
const argv = [
  'clickhouse',
  '--path',
  '/var/lib/clickhouse',
  '--config-file',
  '/etc/clickhouse-server/config.xml',
  '--http_port',
  '8123',
  '--tcp_port',
  '9000',
  '--query',
  "SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP; SELECT * FROM file('stdin', LineAsString, 'x String') FORMAT Null",
];
open({ library: 'chdb', path: library });
load({
  library: 'chdb',
  funcName: 'query_stable',
  retType: DataType.External,
  paramsType: [DataType.I32, DataType.StringArray],
  paramsValue: [argv.length, argv],
});
