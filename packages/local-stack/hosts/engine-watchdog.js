/** A worker thread beside the main thread of engine.js, which the engine blocks: it ends the process when that must be. */
import { workerData } from 'node:worker_threads';
import { requireFreeSpace } from './free-space.js';

const { parent, directory, leastFreeBytes } = workerData;

const PARENT_POLL_MS = 500;
/** Longer than a clean shutdown takes, which waits 5 s for idle connections. */
const SHUTDOWN_MS = 10_000;
/** A disk that writes 1 GB a second fills 50 MB between two looks. */
const SPACE_POLL_MS = 50;

const watchParent = setInterval(() => {
  if (process.ppid === parent) return;
  clearInterval(watchParent);
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), SHUTDOWN_MS);
}, PARENT_POLL_MS);

setInterval(() => requireFreeSpace(directory, leastFreeBytes), SPACE_POLL_MS);
