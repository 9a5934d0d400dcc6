/**
 * The address of Redis: one server, or one that Sentinels watch.
 *
 * redis://user:password@host:6379/0?option=value
 * redis+sentinel://user:password@sentinel-1:26379,sentinel-2:26379/name-of-the-master/0
 *
 * `rediss` and `rediss+sentinel` are the same with TLS.
 */
import type { RedisOptions } from 'ioredis';

const EXAMPLE = 'redis://127.0.0.1:6379';
const FORM = /^redis(s?)(\+sentinel)?:\/\/(?:([^/?#]*)@)?([^/?#@]+)([^?#]*)(\?[^#]*)?(#.*)?$/i;
const PORT = 6379;
const SENTINEL_PORT = 26_379;

/** What the options of an address may be: in words where that is not any text. */
const OPTIONS = {
  /** The version of IP; 0, or without it, ioredis' own choice. */
  family: { form: /^[046]$/, rule: '0, 4 or 6' },
  /** The name in the server's certificate; without it the host. */
  servername: undefined,
  /** How many replicas must have an event before it counts as taken; 0: Redis' own response is enough. */
  replicas: { form: /^\d$/, rule: 'a whole number from 0 to 9' },
  /** The operator knows that it writes each command through to its disk before it answers, and it need not say so. */
  durability: { form: /^assumed$/, rule: 'the word assumed; without it, durability is checked' },
  sentinelUsername: undefined,
  sentinelPassword: undefined,
} as const;
type Options = { readonly [name in keyof typeof OPTIONS]?: string };

/** An address is not valid. The message does not repeat it, because it may hold a password. */
class RedisUrlError extends Error {
  /** @param problem what is wrong, as text to append to the name of a setting */
  constructor(readonly problem: string) {
    super(`the address of Redis ${problem}`);
  }
}

/** What is wrong with the address, as text to append to the name of its setting; undefined if it is valid. */
export function redisUrlProblem(text: string): string | undefined {
  try {
    parseRedisUrl(text);
    return undefined;
  } catch (error) {
    if (error instanceof RedisUrlError) return error.problem;
    throw error;
  }
}

/** The servers that it names, for messages: without user and password. */
export function redisTarget(text: string): string {
  const { nodes, masterName } = parseRedisUrl(text);
  const hosts = nodes.map(({ host, port }) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)).join(',');
  return masterName === undefined ? hosts : `${hosts}/${masterName}`;
}

export type RedisAddress = ReturnType<typeof parseRedisUrl>;

/** @throws RedisUrlError */
export function parseRedisUrl(text: string) {
  const [, s = '', sentinel, credentials = '', hosts = '', path = '', query = '', hash] = FORM.exec(text) ?? [];
  if (hosts === '') throw new RedisUrlError(`must be a URL such as ${EXAMPLE}`);
  if (hash !== undefined) throw new RedisUrlError('has a #; one in a password is written %23');
  const hasSentinels = sentinel !== undefined;
  const nodes = hosts.split(',').map((host) => parseNode(host, hasSentinels ? SENTINEL_PORT : PORT));
  if (!hasSentinels && nodes.length > 1) {
    throw new RedisUrlError('names several servers: begin it with redis+sentinel:// if they are Sentinels');
  }
  const tls = s !== '';
  const { family, servername, replicas = '0', durability, ...sentinelUser } = parseOptions(query);
  if (!hasSentinels && Object.keys(sentinelUser).length > 0) {
    throw new RedisUrlError('has an option for Sentinels, but does not begin with redis+sentinel://');
  }
  if (servername !== undefined && !tls) throw new RedisUrlError('has the option servername, which needs rediss://');
  const [, username = '', password = ''] = /^([^:]*)(?::(.*))?$/s.exec(credentials) ?? [];
  return {
    /** The server, or the Sentinels. */
    nodes,
    tls,
    username: decoded(username),
    password: decoded(password),
    ...parsePath(hasSentinels, path),
    ...sentinelUser,
    family: family === undefined ? undefined : Number(family),
    servername,
    replicas: Number(replicas),
    isDurabilityAssumed: durability !== undefined,
  };
}

function parseNode(text: string, defaultPort: number) {
  // A scheme that browsers know, because others leave the host as it is.
  if (!URL.canParse(`http://${text}`)) {
    throw new RedisUrlError(`must be a URL such as ${EXAMPLE}; a host or port is not valid`);
  }
  const { hostname, pathname } = new URL(`http://${text}`);
  const [, port] = /:(\d{1,5})$/.exec(text.replace(/^\[[^\]]*\]/, '')) ?? [];
  if (hostname === '' || pathname !== '/') throw new RedisUrlError(`must be a URL such as ${EXAMPLE}`);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === undefined ? defaultPort : Number(port) };
}

function parsePath(hasSentinels: boolean, path: string) {
  const segments = path.replace(/^\//, '').split('/');
  /** What the Sentinels call their master; undefined: there are none. */
  const masterName = hasSentinels ? decoded(segments.shift() ?? '') : undefined;
  if (hasSentinels && masterName === undefined) {
    throw new RedisUrlError(
      'must name the master after the Sentinels, such as redis+sentinel://127.0.0.1:26379/mymaster',
    );
  }
  const [database = '', ...others] = segments;
  if (others.length > 0 || (database !== '' && !/^\d{1,5}$/.test(database))) {
    const rule = 'with nothing in its path but the number of a database, such as /1';
    throw new RedisUrlError(`must be a URL such as ${EXAMPLE} ${rule}`);
  }
  return { masterName, db: Number(database) };
}

function parseOptions(query: string): Options {
  const options: { -readonly [name in keyof Options]: string } = {};
  for (const [name, value] of new URLSearchParams(query)) {
    if (!isOption(name)) {
      throw new RedisUrlError(`has an option that is not known; there are ${Object.keys(OPTIONS).join(', ')}`);
    }
    if (options[name] !== undefined || value === '') {
      throw new RedisUrlError(`must have the option ${name} once, and with a value`);
    }
    const option = OPTIONS[name];
    if (option && !option.form.test(value)) throw new RedisUrlError(`must have as its option ${name} ${option.rule}`);
    options[name] = value;
  }
  return options;
}

function isOption(name: string): name is keyof Options {
  return Object.hasOwn(OPTIONS, name);
}

/** Undefined for an empty text. */
function decoded(text: string): string | undefined {
  if (text === '') return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new RedisUrlError('has a % that begins no character; one in a password is written %25');
  }
}

/** The options of ioredis, but for the one that changes the types of responses. */
export type ConnectionOptions = Omit<RedisOptions, 'replyMapping'>;

/**
 * A server that hangs, or whose network does, keeps its connections open, and commands to it would wait for ever, even when it is
 * back or a replica has taken its place. Longer than workers ask for the next job, which is 10 s at most.
 */
const SILENCE_MS = 15_000;

/** The options of a connection to it. */
export function redisClientOptions(address: RedisAddress, behaviour: ConnectionOptions): ConnectionOptions {
  const { nodes, masterName, username, password, db, family, servername } = address;
  const tls = address.tls ? { ...(servername !== undefined && { servername }) } : undefined;
  // A master that has become a replica says so. The new one is behind the same address, or the Sentinels know it.
  const reconnectOnError = (error: Error) => error.message.startsWith('READONLY');
  const common = { socketTimeout: SILENCE_MS, reconnectOnError, ...behaviour, username, password, db, family, tls };
  if (masterName === undefined) return { ...common, ...nodes[0] };
  return {
    ...common,
    sentinels: nodes,
    name: masterName,
    sentinelUsername: address.sentinelUsername,
    sentinelPassword: address.sentinelPassword,
    enableTLSForSentinelMode: address.tls,
    sentinelTLS: tls,
    sentinelRetryStrategy: behaviour.retryStrategy ?? undefined,
  };
}
