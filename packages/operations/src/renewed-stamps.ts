/** What an operation that changes events or cells does before it reports success. */
import { AnswerStamps, REDIS_PREFIX, type RedisClient } from '@meterline/access';

/** Resolves when no question about these accounts is answered with what was kept before. */
export type RenewStamps = (accountIds: readonly string[]) => Promise<void>;

/** @param withRedis opens a connection for each renewal: hours may lie between two */
export function renewStampsWith(
  withRedis: (work: (redis: RedisClient) => Promise<void>) => Promise<void>,
): RenewStamps {
  return (accountIds) => withRedis((redis) => new AnswerStamps(redis, REDIS_PREFIX).renew(accountIds, accountIds));
}
