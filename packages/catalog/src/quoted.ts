/** Quotes values in error messages. */

const QUOTED_LENGTH = 80;

export function quoted(text: string): string {
  return JSON.stringify(shortened(text));
}

export function shortened(text: string): string {
  // A character has at most two code units. Text of megabytes is cut before it becomes an array of characters.
  const characters = [...text.slice(0, 2 * QUOTED_LENGTH + 1)];
  return characters.length > QUOTED_LENGTH ? `${characters.slice(0, QUOTED_LENGTH).join('')}…` : text;
}
