/** The hosts that statements are sent to: one server, the hosts of a cluster, or what balances over them. */
import { Pool } from 'undici';
import { hostsOf } from './addresses.js';

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
