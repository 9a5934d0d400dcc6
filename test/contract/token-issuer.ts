/** The platform's authorisation server: signs tokens, and publishes the keys to check them with. */
import { type RunningServer, startServer } from '@meterline/api';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { pino } from 'pino';

export const ISSUER = 'https://auth.example.com/';
export const AUDIENCE = 'meterline';

type Claims = Readonly<Record<string, unknown>>;

export interface TokenIssuer {
  /** Where its public key is. */
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
  /** How often its keys were asked for. */
  asked(): number;
  /** A token with these claims, whatever they are. */
  sign(claims: Claims): Promise<string>;
  /** A token that somebody else has signed under the name of the same key. */
  forge(claims: Claims): Promise<string>;
  /** A token whose signature is an HMAC with the public key as its secret. */
  signWithSharedSecret(claims: Claims): Promise<string>;
  close(): Promise<void>;
}

export async function startTokenIssuer(): Promise<TokenIssuer> {
  const [own, foreign] = await Promise.all([generateKeyPair('RS256'), generateKeyPair('RS256')]);
  const publicKey = await exportJWK(own.publicKey);
  const published = JSON.stringify({ keys: [{ ...publicKey, kid: 'one', alg: 'RS256', use: 'sig' }] });
  const log = pino({ level: 'silent' });
  let asked = 0;
  const server: RunningServer = await startServer(
    (_request, response) => {
      asked += 1;
      response.end(published);
    },
    { port: 0, log },
  );
  const signed = (claims: Claims, key: CryptoKey | Uint8Array, alg: string) =>
    new SignJWT({ ...claims }).setProtectedHeader({ alg, kid: 'one' }).sign(key);
  return {
    jwksUrl: `http://127.0.0.1:${server.port}/jwks.json`,
    issuer: ISSUER,
    audience: AUDIENCE,
    asked: () => asked,
    sign: (claims) => signed(claims, own.privateKey, 'RS256'),
    forge: (claims) => signed(claims, foreign.privateKey, 'RS256'),
    signWithSharedSecret: (claims) => signed(claims, new TextEncoder().encode(JSON.stringify(publicKey)), 'HS256'),
    close: () => server.close(0),
  };
}

/** A token that says that it needs no signature. */
export function unsigned(claims: Claims): string {
  const parts = [{ alg: 'none' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'));
  return `${parts.join('.')}.`;
}
