/**
 * Whether Redis has everything that was written to it. Redis leaves transactions out while it loads its append-only file when its user
 * `default` lacks a right (redis/redis#14541), and all scripts of BullMQ and of API keys are transactions there. It then answers as always.
 *
 * A transaction raises one key, and only then a plain command, which is never left out, writes the same number to another. Whatever a
 * power cut or a failover takes from the end of what was written, the second is never above the first. If it is, transactions are missing.
 */
import { REDIS_PREFIX } from '@meterline/service/access';
import type { Redis } from 'ioredis';
import { z } from 'zod';

const IN_TRANSACTION = `${REDIS_PREFIX}:collector:marker`;
const PLAIN = `${IN_TRANSACTION}:plain`;
/** A rewrite of the file puts both keys where no transaction is left out, so they are written again and again. */
const RENEW_AFTER_MS = 60_000;

const LEFT_OUT = `has left out jobs and API keys while it loaded its data: give its user default all rights, as redis/users.conf does, and start it again; if they cannot be had back, delete the key ${PLAIN}`;
const EMPTY =
  'has lost its data since this collector started: restore it, or start the collector again if it is meant to be empty';
const NOT_ALLOWED =
  'does not let its user write the keys that show whether it has loaded everything: give it the rights of collector in redis/users.conf';

const written = z.coerce.number().nullable();
const raised = z.tuple([z.unknown(), z.tuple([z.null(), z.number()])]);

export class LoadMarker {
  #renewedAtMs: number | undefined;

  /** What is missing, to follow "Redis"; undefined: nothing. @throws when Redis does not answer */
  async fault(redis: Redis): Promise<string | undefined> {
    try {
      // In this order: another collector may write between the two.
      const plain = written.parse(await redis.get(PLAIN));
      const inTransaction = written.parse(await redis.get(IN_TRANSACTION));
      if ((plain ?? 0) > (inTransaction ?? 0)) return LEFT_OUT;
      if (inTransaction === null && this.#renewedAtMs !== undefined) return EMPTY;
      await this.#renew(redis);
      return undefined;
    } catch (error) {
      const answers = answersIn(error);
      if (answers.some((message) => message.startsWith('NOPERM'))) return NOT_ALLOWED;
      // It is full, or a replica: what is written next fails for the same reason.
      if (answers.some((message) => /^(EXECABORT|OOM|READONLY|MISCONF|NOREPLICAS)/.test(message))) return undefined;
      throw error;
    }
  }

  async #renew(redis: Redis): Promise<void> {
    if (this.#renewedAtMs !== undefined && performance.now() - this.#renewedAtMs < RENEW_AFTER_MS) return;
    // Two commands: the file has a transaction of one as a plain command.
    const results = await redis.multi().incr(IN_TRANSACTION).incr(IN_TRANSACTION).exec();
    const [, [, number]] = raised.parse(results);
    await redis.set(PLAIN, number);
    this.#renewedAtMs = performance.now();
  }
}

/** What Redis has answered, also to the commands of a transaction. */
function answersIn(error: unknown): string[] {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return [];
  const previous = 'previousErrors' in error && Array.isArray(error.previousErrors) ? error.previousErrors : [];
  return [...previous.flatMap(answersIn), error.message];
}
