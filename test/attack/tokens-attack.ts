/** Issue: JWKS away. Also test/contract/tokens.test.ts. */
import { startTokenIssuer } from '../contract/token-issuer.js';
import type { Attack } from './attack.js';
import { HttpClient } from './http-client.js';
import { PATIENCE_MS } from './waiting.js';

const ACCOUNT = 'tokens';
const TOKENS = 300;
const TARGET = `/v0/accounts/${ACCOUNT}/metrics?startTime=2025-10-01T00:00:00Z&endTime=2025-10-02T00:00:00Z`;
/** For the key that is known, and once for all that are not. */
const MOST_FETCHES = 2;

export const tokensAttack: Attack = {
  name: 'tokens',
  what: 'tokens of unknown keys all at once, and then without the server that publishes keys',
  run: async ({ site, random, findings }) => {
    const issuer = await startTokenIssuer();
    const query = await site.startQuery({
      AUTH_JWKS_URL: issuer.jwksUrl,
      AUTH_ISSUER: issuer.issuer,
      AUTH_AUDIENCE: issuer.audience,
    });
    const client = new HttpClient(query.url, { connections: 20, patienceMs: PATIENCE_MS });
    const exp = Math.floor(Date.now() / 1000) + 3_600;
    const own = {
      iss: issuer.issuer,
      aud: issuer.audience,
      sub: 'someone',
      exp,
      scope: 'jobs:list admin',
      accounts: { [ACCOUNT]: 'admin' },
    };
    const known = await issuer.sign(own);
    const ask = async (token: string, expected: number, what: string) => {
      const { status, text } = await client.send({
        method: 'GET',
        target: TARGET,
        headers: { authorization: `Bearer ${token}` },
      });
      if (status !== expected) findings.add(`a token ${what} is ${status}`, text.slice(0, 300));
    };
    /** Of a key that nobody has published; the signature is somebody else's. */
    const unknown = () => {
      const header = { alg: 'RS256', kid: random.uuid() };
      return `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${known.split('.').slice(1).join('.')}`;
    };
    try {
      await ask(known, 200, 'of a known key');
      await Promise.all(Array.from({ length: TOKENS }, () => ask(unknown(), 401, 'of an unknown key')));
      await ask(await issuer.forge(own), 401, 'that somebody else signed');
      const fetches = issuer.asked();
      if (fetches > MOST_FETCHES) findings.add(`keys were fetched ${fetches} times`);
      await issuer.close();
      await ask(known, 200, 'of a known key, without the issuer,');
      await Promise.all(
        Array.from({ length: TOKENS }, () => ask(unknown(), 401, 'of an unknown key, without the issuer,')),
      );
      await ask(known, 200, 'of a known key, in the end,');
      return {
        sent: `${2 * TOKENS} tokens of unknown keys`,
        stood: `each is 401, known keys work; ${fetches} fetches`,
      };
    } finally {
      client.close();
      await query.kill();
      await issuer.close();
    }
  },
};
