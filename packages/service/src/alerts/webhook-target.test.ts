import { expect, it } from '@jest/globals';
import { allowedHostsVariable, targetProblem } from './webhook-target.js';

const NONE = new Set<string>();

it.each(['example.com', 'example.com:8443', '93.184.215.14', '[2606:4700::1111]'])(
  'a webhook may go to https://%s',
  (host) => {
    expect(targetProblem(`https://${host}/hooks?a=b`, NONE)).toBeUndefined();
  },
);

it.each([
  ['127.0.0.1', '127.1', '2130706433', '0x7f000001', '0177.0.0.1', '0', '0.0.0.0', '1２7.0.0.1', '127.0.0.1.'],
  ['10.0.0.1', '172.16.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1', '224.0.0.1', '255.255.255.255'],
  [
    '[::]',
    '[::1]',
    '[::127.0.0.1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:8.8.8.8]',
    '[fe80::1]',
    '[fc00::1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
  ],
  ['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'ⓛocalhost'],
])('a webhook may not go to %s or to similar addresses', (...hosts) => {
  for (const host of hosts)
    expect([host, targetProblem(`https://${host}/`, NONE)]).toEqual([
      host,
      expect.stringContaining('ALERT_ALLOWED_HOSTS'),
    ]);
});

it('a listed host may be private and without TLS, on the listed port, or on any port if none is listed', () => {
  const allowed = allowedHostsVariable.parse('127.0.0.1:8080, [::1],Hooks.internal, proxy:443');
  const problemOf = (url: string) => targetProblem(url, allowed);
  const urls = [
    'http://127.0.0.1:8080',
    'http://[::1]:9',
    'https://hooks.internal',
    'http://hooks.internal',
    'https://proxy',
  ];
  expect(urls.map(problemOf)).toEqual(urls.map(() => undefined));
  expect(problemOf('http://127.0.0.1:8081')).toContain('https');
  expect(problemOf('https://127.0.0.1')).toContain('private network');
  expect(problemOf('http://proxy')).toContain('https');
});

it.each(['https://a', 'a/b', 'a b', 'u@a', 'a:99999'])('ALERT_ALLOWED_HOSTS rejects %j', (text) => {
  expect(allowedHostsVariable.safeParse(text).success).toBe(false);
});
