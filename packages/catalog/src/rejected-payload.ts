/** How a refused event is written down in rejected_events, and how that is read again. */

/**
 * The event as JSON text. Undefined for what is nested too deeply: JSON.parse reads any depth, JSON.stringify and its
 * stack do not write it.
 */
export function payloadOf(input: unknown): string | undefined {
  try {
    return JSON.stringify(input, nonFiniteAsText);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** JSON has no word for the Infinity that 1e999 becomes, and null would hide what was sent. */
function nonFiniteAsText(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}

const REFERENCE = /^"see the payload of position (\d{1,10}) of this job"$/;

/**
 * What stands in place of an event that cannot be written alone, when its whole job is kept as the payload of another
 * refused event of that job, which has a lower position.
 */
export function payloadReference(position: number): string {
  return JSON.stringify(`see the payload of position ${position} of this job`);
}

/** The position that such a reference names; undefined for any other payload. */
export function referencedPosition(payload: string): number | undefined {
  const [, position] = REFERENCE.exec(payload) ?? [];
  return position === undefined ? undefined : Number(position);
}
