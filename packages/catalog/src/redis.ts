/**
 * The address of Redis: one server, or one that Sentinels watch. Every process of Meterline reads it here, and gives what comes of it to
 * ioredis.
 *
 * redis://user:password@host:6379/0?option=value
 * redis+sentinel://user:password@sentinel-1:26379,sentinel-2:26379/name-of-the-master/0
 *
 * `rediss` and `rediss+sentinel` are the same with TLS.
 */

export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

export interface RedisAddress {
  /** The server, or the Sentinels. */
  readonly nodes: readonly RedisNode[];
  readonly tls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly db: number;
  /** What the Sentinels call their master; undefined: there are none. */
  readonly masterName: string | undefined;
  readonly sentinelUsername: string | undefined;
  readonly sentinelPassword: string | undefined;
  /** The version of IP; undefined: ioredis' own choice. */
  readonly family: 4 | 6 | undefined;
  /** The name in the server's certificate; undefined: the host. */
  readonly servername: string | undefined;
  /** How many replicas must have an event before it counts as taken; 0: Redis' own answer is enough. */
  readonly replicas: number;
  /** The operator knows that it writes each command through to its disk before it answers, and it need not say so. */
  readonly isDurabilityAssumed: boolean;
}

const EXAMPLE = 'redis://127.0.0.1:6379';
const FORM = /^redis(s?)(\+sentinel)?:\/\/(?:([^/?#]*)@)?([^/?#@]+)([^?#]*)(\?[^#]*)?(#.*)?$/i;
const PORT = 6379;
const SENTINEL_PORT = 26_379;
const OPTIONS = ['family', 'servername', 'replicas', 'durability', 'sentinelUsername', 'sentinelPassword'];

/** What is wrong with an address, as text to append to the name of its setting. It never repeats the address. */
class Invalid extends Error {}

/** What is wrong with the address, as text to append to the name of its setting; undefined if it is valid. */
export function redisUrlFault(text: string): string | undefined {
  try {
    parse(text);
    return undefined;
  } catch (error) {
    if (error instanceof Invalid) return error.message;
    throw error;
  }
}

/** @throws Error with what is wrong; the text does not repeat the address, which may hold a password */
export function parseRedisUrl(text: string): RedisAddress {
  try {
    return parse(text);
  } catch (error) {
    throw error instanceof Invalid ? new Error(`the address of Redis ${error.message}`) : error;
  }
}

/** The servers that it names, for messages: without user and password. */
export function redisPlace(text: string): string {
  const { nodes, masterName } = parse(text);
  const hosts = nodes.map(({ host, port }) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)).join(',');
  return masterName === undefined ? hosts : `${hosts}/${masterName}`;
}

function parse(text: string): RedisAddress {
  const [, s = '', sentinel, credentials = '', hosts = '', path = '', query = '', hash] = FORM.exec(text) ?? [];
  if (hosts === '') throw new Invalid(`must be a URL such as ${EXAMPLE}`);
  if (hash !== undefined) throw new Invalid('has a #; one in a password is written %23');
  const hasSentinels = sentinel !== undefined;
  const nodes = hosts.split(',').map((host) => parseNode(host, hasSentinels ? SENTINEL_PORT : PORT));
  if (!hasSentinels && nodes.length > 1) {
    throw new Invalid('names several servers: begin it with redis+sentinel:// if they are Sentinels');
  }
  const options = parseOptions(query);
  const colon = credentials.indexOf(':');
  const address = {
    nodes,
    tls: s !== '',
    username: decoded(colon < 0 ? credentials : credentials.slice(0, colon)),
    password: colon < 0 ? undefined : decoded(credentials.slice(colon + 1)),
    ...parsePath(hasSentinels, path),
    sentinelUsername: options.get('sentinelUsername'),
    sentinelPassword: options.get('sentinelPassword'),
    family: familyOf(options.get('family')),
    servername: options.get('servername'),
    replicas: replicasOf(options.get('replicas')),
    isDurabilityAssumed: isAssumed(options.get('durability')),
  };
  const { sentinelUsername, sentinelPassword, servername } = address;
  if (!hasSentinels && (sentinelUsername ?? sentinelPassword) !== undefined) {
    throw new Invalid('has an option for Sentinels, but does not begin with redis+sentinel://');
  }
  if (servername !== undefined && !address.tls) throw new Invalid('has the option servername, which needs rediss://');
  return address;
}

function parseNode(text: string, defaultPort: number): RedisNode {
  // A scheme that browsers know, because others leave the host as it is.
  if (!URL.canParse(`http://${text}`))
    throw new Invalid(`must be a URL such as ${EXAMPLE}; a host or port is not valid`);
  const { hostname, pathname } = new URL(`http://${text}`);
  const [, port] = /:(\d{1,5})$/.exec(text.replace(/^\[[^\]]*\]/, '')) ?? [];
  if (hostname === '' || pathname !== '/') throw new Invalid(`must be a URL such as ${EXAMPLE}`);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === undefined ? defaultPort : Number(port) };
}

function parsePath(hasSentinels: boolean, path: string) {
  const segments = path.replace(/^\//, '').split('/');
  const masterName = hasSentinels ? decoded(segments.shift() ?? '') : undefined;
  if (hasSentinels && masterName === undefined) {
    throw new Invalid('must name the master after the Sentinels, such as redis+sentinel://127.0.0.1:26379/mymaster');
  }
  const [database = '', ...others] = segments;
  if (others.length > 0 || (database !== '' && !/^\d{1,5}$/.test(database))) {
    throw new Invalid(
      `must be a URL such as ${EXAMPLE} with nothing in its path but the number of a database, such as /1`,
    );
  }
  return { masterName, db: Number(database) };
}

function parseOptions(query: string): ReadonlyMap<string, string> {
  const options = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    if (!OPTIONS.includes(name)) throw new Invalid(`has an option that is not known; there are ${OPTIONS.join(', ')}`);
    if (options.has(name) || value === '') throw new Invalid(`must have the option ${name} once, and with a value`);
    options.set(name, value);
  }
  return options;
}

function replicasOf(text = '0'): number {
  if (/^\d$/.test(text)) return Number(text);
  throw new Invalid('must have as its option replicas a whole number from 0 to 9');
}

function isAssumed(text: string | undefined): boolean {
  if (text === undefined || text === 'assumed') return text !== undefined;
  throw new Invalid('must have as its option durability the word assumed; without it, durability is checked');
}

function familyOf(text: string | undefined): 4 | 6 | undefined {
  if (text === undefined) return undefined;
  if (text === '4' || text === '6') return text === '4' ? 4 : 6;
  throw new Invalid('must have as its option family 4 or 6');
}

/** Undefined for an empty text. */
function decoded(text: string): string | undefined {
  if (text === '') return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Invalid('has a % that begins no character; one in a password is written %25');
  }
}

/** How a connection behaves: the names and meanings of ioredis. */
export interface RedisBehaviour {
  readonly lazyConnect?: boolean;
  readonly enableOfflineQueue?: boolean;
  readonly autoResendUnfulfilledCommands?: boolean;
  readonly maxRetriesPerRequest?: number | null;
  readonly connectTimeout?: number;
  readonly commandTimeout?: number;
  readonly socketTimeout?: number;
  readonly disconnectTimeout?: number;
  readonly retryStrategy?: (attempt: number) => number | null;
}

/**
 * A server that hangs, or whose network does, keeps its connections open, and commands to it would wait for ever, even when it is
 * back or a replica has taken its place. Longer than workers ask for the next job, which is 10 s at most.
 */
const SILENCE_MS = 15_000;

/** The options of ioredis' `Redis`. */
export function redisClientOptions(address: RedisAddress, behaviour: RedisBehaviour) {
  const { nodes, masterName, username, password, db, family, servername, tls: hasTls } = address;
  const tls = hasTls ? { ...(servername !== undefined && { servername }) } : undefined;
  const common = { socketTimeout: SILENCE_MS, ...behaviour, username, password, db, family, tls };
  if (masterName === undefined) return { ...common, ...nodes[0] };
  return {
    ...common,
    sentinels: nodes.map((node) => ({ ...node })),
    name: masterName,
    sentinelUsername: address.sentinelUsername,
    sentinelPassword: address.sentinelPassword,
    enableTLSForSentinelMode: hasTls,
    sentinelTLS: tls,
    sentinelRetryStrategy: behaviour.retryStrategy,
    // A master that has become a replica says so; the Sentinels know the new one.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  };
}

/** What `replicated` needs of a connection of ioredis. */
interface Writer {
  /** Another after the connection was lost. */
  readonly stream: unknown;
  wait(replicas: number, timeoutMs: number): Promise<number>;
}

/** What was written may be lost together with the master that has it. */
export class NotReplicated extends Error {
  override readonly name = 'NotReplicated';
}

export interface Replication {
  /** How many replicas must have it; 0: the master alone. */
  readonly replicas: number;
  readonly withinMs: number;
}

/**
 * Writes, and resolves when so many replicas have it, too. Redis answers for what its connection has written, so one that was lost in
 * between, perhaps with the master, answers for nothing: then it counts as not replicated.
 * @throws NotReplicated, or the error of the write
 */
export async function replicated<T>(
  redis: Writer,
  write: () => Promise<T>,
  { replicas, withinMs }: Replication,
): Promise<T> {
  if (replicas === 0) return write();
  const { stream } = redis;
  const result = await write();
  const reached = await redis.wait(replicas, withinMs);
  if (redis.stream !== stream) {
    throw new NotReplicated('the connection to Redis was lost before its replicas had the events');
  }
  if (reached < replicas) {
    throw new NotReplicated(`of ${replicas} replicas of Redis only ${reached} had the events within ${withinMs} ms`);
  }
  return result;
}
