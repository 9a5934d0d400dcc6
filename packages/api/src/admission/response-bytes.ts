/** Limits the bytes of responses that are computed but not sent yet. Otherwise, clients that do not read their responses could fill the memory. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tooMany, unavailable } from '../http/errors.js';
import { onResponseEnd } from '../http/response-end.js';
import { type BudgetErrors, ByteBudget } from './byte-budget.js';

const ACCOUNT_SHARE = 1 / 4;

const RESPONSE_ERRORS: BudgetErrors = {
  accountFull: (bytes) =>
    tooMany(
      'too_many_unread_responses',
      `Clients of this account have not read ${bytes} bytes of earlier responses yet; read them first, or send fewer requests at once.`,
    ),
  processFull: () => unavailable('server_busy', 'The service is sending too many responses; try again shortly.'),
};

/** @param maxBytes the limit for uncompressed JSON */
export function responseBudget(maxBytes: number): ByteBudget {
  return new ByteBudget(maxBytes, ACCOUNT_SHARE, RESPONSE_ERRORS);
}

/**
 * Rejects a request before its response is computed, if clients of the account leave too many responses unread.
 * @throws ApiError `too_many_unread_responses`, `server_busy`
 */
export function requireRoomForResponse(budget: ByteBudget, account: string): void {
  budget.open(account, 1).release();
}

/**
 * Sends JSON, and counts its bytes until the response is sent or its connection is closed. If a response is larger than the account's share of
 * the budget, it is sent only if the account has no other unread response.
 * @throws ApiError `too_many_unread_responses`, `server_busy`
 */
export function sendJson(
  budget: ByteBudget,
  account: string,
  request: IncomingMessage,
  response: ServerResponse,
  json: Buffer,
): void {
  const reservation = budget.open(account);
  reservation.state = 'in progress';
  try {
    reservation.resize(Math.min(json.length, budget.accountBytes));
  } catch (error) {
    reservation.release();
    throw error;
  }
  reservation.become(json.length);
  onResponseEnd(request.socket, response, () => reservation.release());
  response.setHeader('Content-Type', 'application/json; charset=utf-8').setHeader('Content-Length', json.length);
  response.end(json);
}
