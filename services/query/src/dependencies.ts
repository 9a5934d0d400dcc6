import type { AccountDirectory, ApiKeyStore } from '@meterline/access';
import type { Warehouse } from '@meterline/warehouse';
import type { RequestHandler } from 'express';
import type { Logger } from 'pino';
import type { TokenVerifier } from './auth/token-verifier.js';
import type { TrustProxy } from './env.js';
import type { ReadSealed } from './metrics/seal-reader.js';

/** Everything the API needs from outside. */
export interface QueryDependencies {
  readonly warehouse: Warehouse;
  /** Tells before each question which cells may answer it. */
  readonly readSealed: ReadSealed;
  /** The most groups that one caller's cursors may keep stored in 24 hours. */
  readonly maxStoredGroups: number;
  readonly keys: ApiKeyStore;
  readonly accounts: AccountDirectory;
  /** Undefined: only API keys are accepted. */
  readonly tokens: TokenVerifier | undefined;
  /** Rejects when Redis does not answer. */
  readonly pingRedis: () => Promise<unknown>;
  readonly cursorSecret: string;
  readonly clock: () => Date;
  readonly log: Logger;
  /** See every request first, and take no part in answering it: metrics, traces. */
  readonly watchers: readonly RequestHandler[];
  /** Web pages of these origins may call the API. */
  readonly corsOrigins: readonly string[];
  readonly trustProxy: TrustProxy;
  /** The folder of the web page's build; undefined: the API alone. */
  readonly pageFolder: string | undefined;
}
