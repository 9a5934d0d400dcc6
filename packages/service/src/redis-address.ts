/**
 * Parses the address of Redis. The address names one server, or the Sentinels that monitor the server:
 *
 * redis://user:password@host:6379/0?option=value
 * redis+sentinel://user:password@sentinel-1:26379,sentinel-2:26379/name-of-the-master/0
 *
 * `rediss` and `rediss+sentinel` use TLS.
 */
import type { RedisOptions } from 'ioredis';

const EXAMPLE = 'redis://127.0.0.1:6379';
const FORM = /^redis(s?)(\+sentinel)?:\/\/(?:([^/?#]*)@)?([^/?#@]+)([^?#]*)(\?[^#]*)?(#.*)?$/i;
const PORT = 6379;
const SENTINEL_PORT = 26_379;

/** The options of an address. `form` matches the allowed values, and `rule` describes them. An option without them accepts any string. */
const OPTIONS = {
  family: { form: /^[046]$/, rule: '0, 4 or 6' },
  servername: undefined,
  /** The number of replicas that must have an event before it is accepted. If it is 0, the master is enough. */
  replicas: { form: /^\d$/, rule: 'a whole number from 0 to 9' },
  /** Skips the durability check. For a Redis that the operator knows to sync each command to disk before it replies. */
  durability: { form: /^assumed$/, rule: 'the word assumed; without it, durability is checked' },
  sentinelUsername: undefined,
  sentinelPassword: undefined,
} as const;
type Options = { readonly [name in keyof typeof OPTIONS]?: string };

/** Thrown for an invalid address. The message does not repeat the address, because the address may contain a password. */
class RedisUrlError extends Error {
  /** @param problem what is wrong. It continues a message that starts with the name of a setting. */
  constructor(readonly problem: string) {
    super(`the address of Redis ${problem}`);
  }
}

/** Returns what is wrong with the address, or undefined if it is valid. Messages show the result after the name of the setting. */
export function redisUrlProblem(text: string): string | undefined {
  try {
    parseRedisUrl(text);
    return undefined;
  } catch (error) {
    if (error instanceof RedisUrlError) return error.problem;
    throw error;
  }
}

/** Returns the hosts and ports of a Redis address for messages, without the user and the password. */
export function redisTarget(text: string): string {
  const { nodes, masterName } = parseRedisUrl(text);
  const hosts = nodes.map(({ host, port }) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)).join(',');
  return masterName === undefined ? hosts : `${hosts}/${masterName}`;
}

export type RedisAddress = ReturnType<typeof parseRedisUrl>;

export function parseRedisUrl(text: string) {
  const [, s = '', sentinel, credentials = '', hosts = '', path = '', query = '', hash] = FORM.exec(text) ?? [];
  if (hosts === '') throw new RedisUrlError(`must be a URL such as ${EXAMPLE}`);
  if (hash !== undefined) throw new RedisUrlError('contains a #; write a # in a password as %23');
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
  // With `http:`, the URL class checks and normalizes the host. With an unknown scheme, it would leave the host unchanged.
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
  /** The name by which the Sentinels know the master. Undefined if there are no Sentinels. */
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
      throw new RedisUrlError(`has an unknown option; the options are ${Object.keys(OPTIONS).join(', ')}`);
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

function decoded(text: string): string | undefined {
  if (text === '') return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new RedisUrlError('has an invalid percent encoding; write a % in a password as %25');
  }
}

export type ConnectionOptions = Omit<RedisOptions, 'replyMapping'>;

/**
 * The timeout of a socket that receives nothing. If a server or its network hangs, its connections stay open, and pending commands would wait
 * forever, even after a failover. The timeout is longer than a worker's blocking read for the next job, which takes at most 10 s.
 */
const SILENCE_MS = 15_000;

export function redisClientOptions(address: RedisAddress, behaviour: ConnectionOptions): ConnectionOptions {
  const { nodes, masterName, username, password, db, family, servername } = address;
  const tls = address.tls ? { ...(servername !== undefined && { servername }) } : undefined;
  // The error READONLY means that the master became a replica. Reconnecting finds the new master, at the same address or through Sentinels.
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
