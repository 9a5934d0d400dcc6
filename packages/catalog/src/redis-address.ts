/**
 * The address of a Redis: one server, one that Sentinels watch, or a Cluster. Every process and library of Meterline reads it
 * here, and gives what comes of it to ioredis.
 *
 * redis://user:password@host:6379/0?option=value
 * redis+sentinel://user:password@sentinel-1:26379,sentinel-2:26379/name-of-the-master/0
 * redis+cluster://user:password@node-1:6379,node-2:6379
 *
 * `rediss`, `rediss+sentinel` and `rediss+cluster` are the same with TLS.
 */

export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

export interface RedisAddress {
  readonly form: 'server' | 'sentinel' | 'cluster';
  /** The server, the Sentinels, or some nodes of the Cluster, from which the others are known. */
  readonly nodes: readonly RedisNode[];
  readonly tls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** 0 in a Cluster, which has no others. */
  readonly db: number;
  /** What the Sentinels call their master. */
  readonly masterName: string | undefined;
  readonly sentinelUsername: string | undefined;
  readonly sentinelPassword: string | undefined;
  /** The version of IP; undefined: either. */
  readonly family: 4 | 6 | undefined;
  /** In milliseconds; undefined: as each process has it. */
  readonly connectTimeout: number | undefined;
  /** The name in the server's certificate; undefined: the host. */
  readonly servername: string | undefined;
  /** How many replicas must have an event before it counts as taken; 0: Redis' own answer is enough. */
  readonly replicas: number;
}

const EXAMPLE = 'redis://127.0.0.1:6379';
const FORM = /^redis(s?)(?:\+(sentinel|cluster))?:\/\/(?:([^/?#]*)@)?([^/?#@]+)([^?#]*)(\?[^#]*)?(#.*)?$/i;
const DEFAULT_PORTS = { server: 6379, sentinel: 26_379, cluster: 6379 } as const;
const DATABASE = /^\d{1,5}$/;
const OPTIONS = ['db', 'family', 'connectTimeout', 'servername', 'replicas', 'sentinelUsername', 'sentinelPassword'];

/** What is wrong with an address, as text to append to the name of its setting. It never repeats the address. */
class Fault extends Error {}

/** What is wrong with the address, as text to append to the name of its setting; undefined if it is valid. */
export function redisUrlFault(text: string): string | undefined {
  try {
    parse(text);
    return undefined;
  } catch (error) {
    if (error instanceof Fault) return error.message;
    throw error;
  }
}

/** @throws Error with what is wrong; the text does not repeat the address, which may hold a password */
export function parseRedisUrl(text: string): RedisAddress {
  try {
    return parse(text);
  } catch (error) {
    throw error instanceof Fault ? new Error(`the address of Redis ${error.message}`) : error;
  }
}

/** The servers that it names, for messages: without user and password. */
export function redisPlace(text: string): string {
  const { nodes, masterName } = parse(text);
  const hosts = nodes.map(({ host, port }) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)).join(',');
  return masterName === undefined ? hosts : `${hosts}/${masterName}`;
}

function parse(text: string): RedisAddress {
  const [, s = '', kind = 'server', credentials = '', hosts = '', path = '', query = '', hash] = FORM.exec(text) ?? [];
  const form = formOf(kind.toLowerCase());
  if (hosts === '') throw new Fault(`must be a URL such as ${EXAMPLE}`);
  if (hash !== undefined) throw new Fault('has a #; one in a password is written %23');
  const nodes = hosts.split(',').map((host) => parseNode(host, DEFAULT_PORTS[form]));
  if (form === 'server' && nodes.length > 1) {
    throw new Fault('names several servers: begin it with redis+sentinel:// or redis+cluster://');
  }
  const options = parseOptions(query);
  const whole = (name: string, min: number, max: number) => wholeOption(name, options.get(name), min, max);
  const colon = credentials.indexOf(':');
  const address = {
    form,
    nodes,
    tls: s !== '',
    username: decoded(colon < 0 ? credentials : credentials.slice(0, colon)),
    password: colon < 0 ? undefined : decoded(credentials.slice(colon + 1)),
    ...parsePath(form, path, whole('db', 0, 99_999)),
    sentinelUsername: options.get('sentinelUsername'),
    sentinelPassword: options.get('sentinelPassword'),
    family: familyOf(whole('family', 4, 6)),
    connectTimeout: whole('connectTimeout', 100, 600_000),
    servername: options.get('servername'),
    replicas: whole('replicas', 0, 9) ?? 0,
  };
  const { sentinelUsername, sentinelPassword, servername } = address;
  if (form !== 'sentinel' && (sentinelUsername ?? sentinelPassword) !== undefined) {
    throw new Fault('has an option for Sentinels, but does not begin with redis+sentinel://');
  }
  if (servername !== undefined && !address.tls) throw new Fault('has the option servername, which needs rediss://');
  return address;
}

function formOf(kind: string): RedisAddress['form'] {
  return kind === 'sentinel' || kind === 'cluster' ? kind : 'server';
}

function parseNode(text: string, defaultPort: number): RedisNode {
  // A scheme that browsers know, because others leave the host as it is.
  if (!URL.canParse(`http://${text}`)) throw new Fault(`must be a URL such as ${EXAMPLE}; a host or port is not valid`);
  const { hostname, pathname } = new URL(`http://${text}`);
  const [, port] = /:(\d{1,5})$/.exec(text.replace(/^\[[^\]]*\]/, '')) ?? [];
  if (hostname === '' || pathname !== '/') throw new Fault(`must be a URL such as ${EXAMPLE}`);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === undefined ? defaultPort : Number(port) };
}

function parsePath(form: RedisAddress['form'], path: string, option: number | undefined) {
  const segments = path.replace(/^\//, '').split('/');
  const masterName = form === 'sentinel' ? decoded(segments.shift() ?? '') : undefined;
  if (form === 'sentinel' && masterName === undefined) {
    throw new Fault('must name the master after the Sentinels, such as redis+sentinel://127.0.0.1:26379/mymaster');
  }
  const [database = '', ...others] = segments;
  if (others.length > 0 || (database !== '' && !DATABASE.test(database))) {
    throw new Fault(
      `must be a URL such as ${EXAMPLE} with nothing in its path but the number of a database, such as /1`,
    );
  }
  if (database !== '' && option !== undefined) throw new Fault('names the database twice');
  const db = option ?? Number(database);
  if (form === 'cluster' && db !== 0) throw new Fault('names a database, but a Redis Cluster has only one');
  return { masterName, db };
}

function parseOptions(query: string): ReadonlyMap<string, string> {
  const options = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    if (!OPTIONS.includes(name)) throw new Fault(`has an option that is not known; there are ${OPTIONS.join(', ')}`);
    if (options.has(name) || value === '') throw new Fault(`must have the option ${name} once, and with a value`);
    options.set(name, value);
  }
  return options;
}

function wholeOption(name: string, text: string | undefined, min: number, max: number): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new Fault(`must have as its option ${name} a whole number from ${min} to ${max}`);
}

function familyOf(value: number | undefined): 4 | 6 | undefined {
  if (value === undefined || value === 4 || value === 6) return value;
  throw new Fault('must have as its option family 4 or 6');
}

/** Undefined for an empty text. */
function decoded(text: string): string | undefined {
  if (text === '') return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Fault('has a % that begins no character; one in a password is written %25');
  }
}

/** How a connection behaves: the names and meanings of ioredis. */
export interface RedisBehaviour {
  readonly lazyConnect?: boolean;
  readonly enableOfflineQueue?: boolean;
  readonly enableReadyCheck?: boolean;
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

/** The arguments of ioredis' `Redis`, or where there are `nodes`, of its `Cluster`. */
export function redisClientOptions(address: RedisAddress, behaviour: RedisBehaviour) {
  const { form, username, password, db, family, servername, tls: hasTls } = address;
  const nodes = address.nodes.map((node) => ({ ...node }));
  const tls = hasTls ? { ...(servername !== undefined && { servername }) } : undefined;
  const connectTimeout = address.connectTimeout ?? behaviour.connectTimeout;
  const common = { socketTimeout: SILENCE_MS, ...behaviour, connectTimeout, username, password, family, tls };
  if (form === 'server') return { nodes: undefined, options: { ...common, ...nodes[0], db } };

  if (form === 'cluster') {
    const { retryStrategy, lazyConnect, enableOfflineQueue, ...redisOptions } = common;
    // Certificates are for names, not for the addresses that ioredis would make of them.
    const dnsLookup = hasTls ? keepName : undefined;
    const options = { redisOptions, lazyConnect, enableOfflineQueue, clusterRetryStrategy: retryStrategy, dnsLookup };
    // It asks one node, any of them, how the Cluster is. `connect()` never settles when that one is away, although all others answer.
    return { nodes, options: { ...options, enableReadyCheck: false } };
  }
  const sentinels = {
    sentinels: nodes,
    name: address.masterName ?? '',
    sentinelUsername: address.sentinelUsername,
    sentinelPassword: address.sentinelPassword,
    enableTLSForSentinelMode: hasTls,
    sentinelTLS: tls,
    sentinelRetryStrategy: behaviour.retryStrategy,
    sentinelReconnectStrategy: (attempt: number) => Math.min(attempt * 100, 1_000),
    // A master that Sentinels have replaced is left, even if it still answers.
    failoverDetector: true,
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  };
  return { nodes: undefined, options: { ...common, ...sentinels, db } };
}

function keepName(name: string, callback: (error: null, address: string) => void): void {
  callback(null, name);
}
