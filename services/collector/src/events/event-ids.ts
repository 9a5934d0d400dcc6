/**
 * Event ids for producers whose ids are not UUIDs. The same id always becomes the same UUID, on every machine and in every
 * release: it is the identity of an event for ever. Source: RFC 9562, section 5.5, and docs/decisions/0025.
 */
import { v5 } from 'uuid';

/** Must never change. */
const EVENT_ID_NAMESPACE = '5c8a2f0e-3b1d-4a68-9e77-d0c4b6a1f283';

/** The account is part of the name, so that the same id in two accounts is two events everywhere. */
export function eventIdOf(account: string, id: string): string {
  return v5(JSON.stringify([account, id]), EVENT_ID_NAMESPACE);
}

/** A CloudEvent is identified by its source and its id together. Source: CloudEvents 1.0.2, section "id". */
export function eventIdOfCloudEvent(account: string, source: string, id: string): string {
  return v5(JSON.stringify([account, source, id]), EVENT_ID_NAMESPACE);
}
