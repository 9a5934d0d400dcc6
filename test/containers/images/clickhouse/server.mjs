// Process 1: starts the engine, which ends when its standard input does, and ends that on SIGTERM, as clickhouse-server does.
import { spawn } from 'node:child_process';

const child = spawn(process.execPath, ['/opt/engine/engine.mjs'], { stdio: ['pipe', 'inherit', 'inherit'] });
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => child.stdin.end());
child.once('exit', (code) => process.exit(code ?? 1));
