/** Finds out who asks: an API key of ours, or a JWT of the platform. Source: DESIGN section 7. */
import type { IncomingMessage } from 'node:http';
import { type ApiKeyStore, parseToken } from '@meterline/access';
import { unauthorized } from '../http/errors.js';
import { accessAnswer } from '../http/outages.js';
import { noteInLog } from '../http/request-log.js';
import type { Caller } from './caller.js';
import { readBearerToken } from './credentials.js';
import type { TokenVerifier } from './token-verifier.js';

/** @throws ApiError `unauthorized`, `conflicting_credentials`, `auth_unavailable` */
export type Authenticate = (request: IncomingMessage) => Promise<Caller>;

export interface Authorities {
  readonly keys: ApiKeyStore;
  /** Undefined: only API keys are accepted. */
  readonly tokens: TokenVerifier | undefined;
}

export function createAuthenticate(authorities: Authorities): Authenticate {
  return async (request) => {
    const caller = await identify(authorities, readBearerToken(request));
    if (!caller) {
      throw unauthorized('The API key or token is unknown, revoked or expired; send a valid one.', { presented: true });
    }
    noteInLog(request, { caller: caller.id });
    return caller;
  };
}

async function identify({ keys, tokens }: Authorities, token: string): Promise<Caller | undefined> {
  if (!parseToken(token)) return tokens?.verify(token);
  const key = await accessAnswer(keys.authenticate(token));
  return key && { id: key.clientId, scopes: undefined, roles: new Map([[key.account, key.role]]) };
}
