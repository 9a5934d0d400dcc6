/** Tells an outage of a server we depend on, which the caller may wait out, from a bug, which is ours. */
import { isContentError } from '@meterline/warehouse';
import { ZodError } from 'zod';
import { type ApiError, authUnavailable, storageUnavailable } from './errors.js';

/** @throws ApiError `storage_unavailable` when ClickHouse does not answer */
export function storageAnswer<T>(answer: Promise<T>): Promise<T> {
  return answerOf(answer, storageUnavailable);
}

/** @throws ApiError `auth_unavailable` when Redis does not answer */
export function accessAnswer<T>(answer: Promise<T>): Promise<T> {
  return answerOf(answer, authUnavailable);
}

async function answerOf<T>(answer: Promise<T>, unavailable: (cause: unknown) => ApiError): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    // The server did answer, but with something that our statements and records cannot bring about.
    if (error instanceof ZodError || isContentError(error)) throw error;
    throw unavailable(error);
  }
}
