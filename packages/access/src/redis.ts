/** Meterline's Redis: its keys, its address, and what its errors mean. */

/** The prefix of Meterline's own keys; BullMQ's begin with `bull`. */
export const REDIS_PREFIX = 'meterline';

const EXAMPLE = 'redis://127.0.0.1:6379';
const PROTOCOLS: readonly string[] = ['redis:', 'rediss:'];
const DATABASE = /^\/?\d{0,5}$/;

/**
 * What is wrong with the address of a Redis, as text to append to the name of its setting; undefined if it is valid. Checked
 * strictly, because the client reads any path as a database and any parameter as one of its options. The text does not
 * repeat the address, which may hold a password.
 */
export function redisUrlFault(text: string): string | undefined {
  if (!URL.canParse(text)) return `must be a URL such as ${EXAMPLE}`;
  const { protocol, hostname, pathname, search, hash } = new URL(text);
  if (!PROTOCOLS.includes(protocol) || hostname === '') return `must be a URL such as ${EXAMPLE}`;
  if (DATABASE.test(pathname) && search === '' && hash === '') return undefined;
  return `must be a URL such as ${EXAMPLE} with nothing after it but the number of a database, such as /1`;
}

/** `refused`: Redis answers, with an error. `foreign`: something else answers. `away`: nothing does. */
export type RedisFailure = 'refused' | 'foreign' | 'away';

/** An answer that ioredis cannot read has no error code, but this text in its message. Source: ioredis, DataHandler. */
const UNREADABLE = /Please report this\.$/;

/** What kind of failure ioredis reports of a connection or a command. */
export function redisFailureKind(error: unknown): RedisFailure {
  if (!(error instanceof Error)) return 'away';
  // A wrong password, a database that is not there, no memory left, read-only.
  if (error.name === 'ReplyError') return 'refused';
  return UNREADABLE.test(error.message) ? 'foreign' : 'away';
}

/** Of two errors of one connection the more informative one: a server that is not Redis may also just hang up. */
export function moreInformative(known: unknown, next: unknown): unknown {
  if (known === undefined) return next;
  return redisFailureKind(known) === 'away' && redisFailureKind(next) !== 'away' ? next : known;
}
