import { createSocket } from 'node:dgram';
import { getServers, setServers } from 'node:dns';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { LookupFunction } from 'node:net';
import { expect, it } from '@jest/globals';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { listening } from '../../../test/harness/listening.js';
import { serve } from '../../../test/harness/serving.js';
import { postWebhook } from './post-webhook.js';

const allowedHosts = new Set(['127.0.0.1']);

it('only a 2xx status counts as a delivery', async () => {
  for (const [status, isDelivered] of [
    [200, true],
    [204, true],
    [400, false],
    [500, false],
  ] as const) {
    const { url } = await serve((response) => response.writeHead(status).end('ok'));
    expect(await postWebhook(url, '{}', {}, { allowedHosts })).toEqual({ isDelivered, outcome: String(status) });
  }
});

it.each([
  [429, '120', 120_000],
  [503, 'Fri, 01 Jan 1999 00:00:00 GMT', 0],
  [503, 'soon', undefined],
  [500, '120', undefined],
])('a status of %d with Retry-After: %s gives retryAfterMs %p', async (status, header, retryAfterMs) => {
  const { url } = await serve((response) => response.writeHead(status, { 'retry-after': header }).end());
  const result = await postWebhook(url, '{}', {}, { allowedHosts });
  expect(result).toEqual({ isDelivered: false, outcome: String(status), retryAfterMs });
});

it('redirects are not followed', async () => {
  const elsewhere = await serve((response) => response.end());
  const { url } = await serve((response) => response.writeHead(307, { location: elsewhere.url }).end());
  expect(await postWebhook(url, '{}', {}, { allowedHosts })).toEqual({ isDelivered: false, outcome: '307' });
  expect(elsewhere.requests).toEqual([]);
});

it('an endless response body is cut off, and the status counts', async () => {
  let sent = 0;
  const { url } = await serve((response) => {
    const chunk = Buffer.alloc(64 * 1024);
    const more = () => {
      while (!response.destroyed && response.write(chunk)) sent += chunk.length;
    };
    response.on('drain', more);
    more();
  });
  expect(await postWebhook(url, '{}', {}, { allowedHosts })).toEqual({ isDelivered: true, outcome: '200' });
  // Only the socket buffers fill.
  expect(sent).toBeLessThan(64 * 1024 * 1024);
});

it('the outcome of a hanging or unreachable receiver contains no address', async () => {
  const { url } = await serve(() => undefined);
  const hanging = await postWebhook(url, '{}', {}, { allowedHosts, timeoutMs: 50 });
  expect(hanging).toEqual({ isDelivered: false, outcome: 'no response within 0.05 s' });
  const away = await postWebhook('http://127.0.0.1:1/', '{}', {}, { allowedHosts });
  expect(away).toEqual({ isDelivered: false, outcome: 'ECONNREFUSED' });
});

/** A lookup that returns the lists one after the other, and then the last one again. */
function resolvingTo(...responses: readonly (readonly string[])[]): LookupFunction {
  const left = [...responses];
  return (_name, { all }, callback) => {
    const addresses = (left.length > 1 ? left.shift() : left[0]) ?? [];
    const entries = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    if (all) callback(null, entries);
    else callback(null, entries[0]?.address ?? '', entries[0]?.family);
  };
}

it.each([
  '127.0.0.1',
  '10.0.0.1',
  '169.254.169.254',
  '0.0.0.0',
  '::1',
  '::ffff:127.0.0.1',
  'fd00::1',
  '64:ff9b::7f00:1',
  '64:ff9b::a00:1',
  '::127.0.0.1',
])('a host that resolves to %s is not connected to', async (address) => {
  const { url, requests } = await serve((response) => response.end());
  for (const addresses of [[address], ['93.184.215.14', address]]) {
    const options = { allowedHosts, lookup: resolvingTo(addresses) };
    const result = await postWebhook(`https://hooks.example:${new URL(url).port}/`, '{}', {}, options);
    expect(result).toEqual({ isDelivered: false, outcome: 'the host has an address that is not public' });
  }
  expect(requests).toEqual([]);
});

it('a host that resolves to a public IPv4 address behind NAT64 is connected to', async () => {
  const options = { allowedHosts, lookup: resolvingTo(['64:ff9b::5db8:d70e']), timeoutMs: 50 };
  const { outcome } = await postWebhook('https://hooks.example/', '{}', {}, options);
  expect(outcome).not.toBe('the host has an address that is not public');
});

it('a webhook to a public host uses the proxy, which resolves the name; a webhook to an allowed host does not', async () => {
  const tunnels: (string | undefined)[] = [];
  const proxy = createServer().on('connect', ({ url }, socket) => {
    tunnels.push(url);
    socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
  });
  const proxyAgent = new HttpsProxyAgent(await listening(proxy));
  const { url } = await serve((response) => response.end());
  const options = { allowedHosts, proxyAgent };
  expect(await postWebhook('https://hooks.example/', '{}', {}, options)).toEqual({
    isDelivered: false,
    outcome: '403',
  });
  expect(await postWebhook(url, '{}', {}, options)).toEqual({ isDelivered: true, outcome: '200' });
  expect(tunnels).toEqual(['hooks.example:443']);
  proxy.close();
});

it('a host that resolves to a private address only at the second attempt is not connected to then', async () => {
  const lookup = resolvingTo(['192.0.2.1'], ['127.0.0.1']);
  const attempt = () => postWebhook('https://hooks.example/', '{}', {}, { allowedHosts, lookup, timeoutMs: 20 });
  await attempt();
  expect((await attempt()).outcome).toBe('the host has an address that is not public');
});

it('a name server that does not respond, or only to A queries, delays no other webhook', async () => {
  const requested: string[] = [];
  const nameServer = createSocket('udp4', (query, { port, address }) => {
    const name = query.toString('latin1', 12);
    requested.push(name);
    const typeAndClass = query.subarray(query.indexOf(0, 12) + 1).subarray(0, 4);
    if (name.includes('slow') || (name.includes('ipv4') && typeAndClass[1] !== 1)) return;
    // Repeats the question, followed by one record: a pointer to the name at byte 12, type, class, a TTL of 60 s, 4 or 16 bytes of data.
    const question = query.subarray(12, query.indexOf(0, 12) + 5);
    const loopback = typeAndClass[1] === 1 ? [0, 4, 127, 0, 0, 1] : [0, 16, ...Array(15).fill(0), 1];
    const flagsAndCounts = Buffer.from([0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    const record = [Buffer.from([0xc0, 12]), typeAndClass, Buffer.from([0, 0, 0, 60, ...loopback])];
    nameServer.send(Buffer.concat([query.subarray(0, 2), flagsAndCounts, question, ...record]), port, address);
  });
  nameServer.bind(0, '127.0.0.1');
  await once(nameServer, 'listening');
  const before = getServers();
  setServers([`127.0.0.1:${nameServer.address().port}`]);
  try {
    const none = new Set<string>();
    const slow = Array.from({ length: 8 }, (_, n) =>
      postWebhook(`https://slow${n}.example/`, '{}', {}, { allowedHosts: none, timeoutMs: 2_000 }),
    );
    for (const name of ['quick', 'ipv4only']) {
      const result = await postWebhook(`https://${name}.example/`, '{}', {}, { allowedHosts: none, timeoutMs: 1_900 });
      expect(result.outcome).toBe('the host has an address that is not public');
    }
    expect(requested.filter((name) => name.includes('slow')).length).toBeGreaterThanOrEqual(16);
    const late = { isDelivered: false, outcome: 'the name server did not respond within 800 ms' };
    expect(await Promise.all(slow)).toEqual(slow.map(() => late));
  } finally {
    setServers(before);
    nameServer.close();
  }
});

it('a webhook to a private address is not posted', async () => {
  const outcome = await postWebhook('https://[::1]/', '{}', {}, { allowedHosts: new Set() });
  expect(outcome).toEqual({ isDelivered: false, outcome: expect.stringContaining('private network') });
});
