export { type QueueDepth, readQueueDepth, waitingSeconds } from './queue-depth.js';
