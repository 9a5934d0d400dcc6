/**
 * Posts one webhook. Without a proxy, this module resolves host names itself and connects only to public addresses. So it does no harm if a
 * name leads to another address than at an earlier check. Redirects are not followed. docs/decisions/0013 explains the choice of libraries.
 */
import { promises as dns } from 'node:dns';
import { type RequestOptions, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { parseRetryAfter } from '@meterline/catalog';
import { type AllowedHosts, isAllowedHost, isPublicAddress, targetProblem } from '@meterline/service/alerts';
import { inTime } from '@meterline/service/waiting';
import type { HttpsProxyAgent } from 'https-proxy-agent';

/** Covers a whole attempt, from the DNS query to the last packet. */
export const ATTEMPT_TIMEOUT_MS = 10_000;
/** The share of the timeout for DNS. If one of the queries for IPv4 and IPv6 addresses hangs, enough time is left to connect. */
const DNS_SHARE = 0.4;
/** The response body is ignored. The connection is closed after this many bytes. */
const MAX_RESPONSE_BYTES = 64 * 1024;
const MAX_REASON_LENGTH = 100;

export interface PostOptions extends Pick<RequestOptions, 'lookup'> {
  readonly allowedHosts: AllowedHosts;
  /** A proxy for hosts that are not in `allowedHosts`. The proxy resolves their names, and must itself reject private addresses. */
  readonly proxyAgent?: HttpsProxyAgent<string> | undefined;
  readonly timeoutMs?: number;
}

export interface AttemptResult {
  readonly isDelivered: boolean;
  /** The HTTP or SMTP status, or why there is none. Customers read it, so it has no IP address: a name may resolve to an internal one. */
  readonly outcome: string;
  /** The `Retry-After` header of a response with status 429 or 503. */
  readonly retryAfterMs?: number | undefined;
  /** True if another attempt would fail as well. */
  readonly isFinal?: boolean;
  /** More about a failure, only for the log. */
  readonly reason?: string | undefined;
}

/** With this status the receiver asks for no more attempts. Source: Standard Webhooks, "Deliverability and reliability". */
const GONE = 410;

/** Any 2xx status counts as delivered. The promise never rejects: a failure is a result with `isDelivered` false. */
export function postWebhook(
  target: string,
  body: string,
  headers: Readonly<Record<string, string>>,
  { allowedHosts, proxyAgent, timeoutMs = ATTEMPT_TIMEOUT_MS, lookup }: PostOptions,
): Promise<AttemptResult> {
  const problem = targetProblem(target, allowedHosts);
  if (problem !== undefined) return Promise.resolve({ isDelivered: false, outcome: `url ${problem}` });
  const url = new URL(target);
  const isAllowed = isAllowedHost(url, allowedHosts);
  const options = {
    method: 'POST',
    headers,
    agent: (!isAllowed && proxyAgent) || false,
    lookup: isAllowed ? lookup : publicOnly(lookup ?? dnsLookup(timeoutMs * DNS_SHARE)),
    signal: AbortSignal.timeout(timeoutMs),
  };
  return new Promise((resolve) => {
    let status: number | undefined;
    let retryAfterMs: number | undefined;
    let failure: NodeJS.ErrnoException | undefined;
    const request = (url.protocol === 'http:' ? requestHttp : requestHttps)(url, options, (response) => {
      status = response.statusCode ?? 0;
      const isBusy = status === 429 || status === 503;
      if (isBusy) retryAfterMs = parseRetryAfter(response.headers['retry-after'] ?? null, new Date());
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_RESPONSE_BYTES) request.destroy();
      });
      response.on('error', () => undefined);
    });
    request.on('error', (error) => {
      failure ??= error;
    });
    request.on('close', () => {
      const isDelivered = status !== undefined && status >= 200 && status < 300;
      const outcome = status === undefined ? reasonOf(failure, timeoutMs) : String(status);
      resolve({ isDelivered, outcome, retryAfterMs, ...(status === GONE && { isFinal: true }) });
    });
    request.end(body);
  });
}

/**
 * Queries the name servers directly. The system's resolver (`getaddrinfo`) uses two threads of the process for all names, so an
 * unresponsive name server of one customer would delay every customer's webhooks.
 */
function dnsLookup(timeoutMs: number): LookupFunction {
  return async (hostname, { all }, callback) => {
    const queries = [dns.resolve4(hostname), dns.resolve6(hostname)];
    const results = await Promise.allSettled(queries.map((query) => inTime('the name server', query, timeoutMs)));
    const addresses = results
      .flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
      .map((address) => ({ address, family: isIP(address) }));
    const [first] = addresses;
    const [ipv4] = results;
    if (!first) callback(ipv4?.status === 'rejected' ? ipv4.reason : new Error('the name has no address'), '');
    else if (all) callback(null, addresses);
    else callback(null, first.address, first.family);
  };
}

/** Wraps a lookup, and fails if the name has an address that is not public. `targetProblem` checks addresses in URLs. */
function publicOnly(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) =>
    lookup(hostname, options, (error, result, family) => {
      const addresses = typeof result === 'string' ? [result] : result.map(({ address }) => address);
      if (error || addresses.every(isPublicAddress)) callback(error, result, family);
      else callback(new Error('the host has an address that is not public'), '');
    });
}

function reasonOf(error: NodeJS.ErrnoException | undefined, timeoutMs: number): string {
  if (!error) return 'the connection was closed without a response';
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return `no response within ${timeoutMs / 1000} s`;
  return error.code ?? error.message.slice(0, MAX_REASON_LENGTH);
}
