/** The hosts that statements are sent to: one server, the hosts of a cluster, or what balances over them. */
import { Pool } from 'undici';

/** For short statements, and to end others. */
const SHORT_CONNECTIONS = 2;

/** One of several hosts that is away must not take all the time that the caller waits. */
const CONNECT_MS = 2_000;

/** Connections to one host, kept alive. */
export interface Host {
  readonly statements: Pool;
  readonly short: Pool;
  readonly pings: Pool;
}

/** @param urls one address, or several that are separated by commas */
export function hostsOf(urls: string): string[] {
  return urls.split(',').map((url) => url.trim());
}

/** They connect at the first statement. */
export function openHosts(urls: string, timeoutMs: number, connections: number): Host[] {
  const hosts = hostsOf(urls);
  const connectMs = hosts.length > 1 ? Math.min(CONNECT_MS, timeoutMs) : timeoutMs;
  const limits = { connect: { timeout: connectMs }, headersTimeout: timeoutMs, bodyTimeout: timeoutMs };
  return hosts.map((url) => ({
    statements: new Pool(url, { ...limits, connections }),
    short: new Pool(url, { ...limits, connections: SHORT_CONNECTIONS }),
    pings: new Pool(url, { ...limits, connections: 1 }),
  }));
}

const EXAMPLE = 'http://127.0.0.1:8123';
const PROTOCOLS: readonly string[] = ['http:', 'https:'];

/**
 * What is wrong with the addresses of ClickHouse's HTTP interface, separated by commas, to follow the name of where it came from; undefined
 * when nothing is. A path, credentials or parameters in one would be ignored. The address itself is not repeated: it may
 * hold a password.
 */
export function clickHouseUrlFault(text: string): string | undefined {
  return hostsOf(text)
    .map(urlFault)
    .find((fault) => fault !== undefined);
}

function urlFault(text: string): string | undefined {
  if (!URL.canParse(text)) return `must be a URL such as ${EXAMPLE}`;
  const { protocol, username, password, pathname, search, hash } = new URL(text);
  if (!PROTOCOLS.includes(protocol)) return `must be a URL such as ${EXAMPLE}`;
  const more = [username, password, pathname === '/' ? '' : pathname, search, hash].some((part) => part !== '');
  if (!more) return undefined;
  return (
    `must be a URL such as ${EXAMPLE} and nothing more: user, password and database are named by ` +
    'CLICKHOUSE_USER, CLICKHOUSE_PASSWORD and CLICKHOUSE_DATABASE'
  );
}
