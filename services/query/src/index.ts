export { createApp } from './app.js';
export type { Caller } from './auth/caller.js';
export { createTokenVerifier, type TokenVerifier, type TokenVerifierOptions } from './auth/token-verifier.js';
export type { QueryDependencies } from './dependencies.js';
export { readEnv, type TrustProxy } from './env.js';
export { createSealReader } from './metrics/seal-reader.js';
export { createRedis } from './redis-connection.js';
export { type RunningServer, startServer } from './server.js';
