/** `refused`: Redis answers, with an error. `foreign`: something else answers. `away`: nothing does. */
export type RedisFailure = 'refused' | 'foreign' | 'away';

/** ioredis gives no code to what it cannot read; it adds this to the message. Source: ioredis, DataHandler. */
const UNREADABLE = /Please report this\.$/;

/** What kind of failure ioredis reports of a connection or a command. */
export function redisFailureKind(error: unknown): RedisFailure {
  if (!(error instanceof Error)) return 'away';
  // A wrong password, a database that is not there, no memory left, read-only.
  if (error.name === 'ReplyError') return 'refused';
  return UNREADABLE.test(error.message) ? 'foreign' : 'away';
}

/** Of two errors of one connection the one that says more: a server that is no Redis may hang up as well. */
export function moreTelling(known: unknown, next: unknown): unknown {
  if (known === undefined) return next;
  return redisFailureKind(known) === 'away' && redisFailureKind(next) !== 'away' ? next : known;
}
