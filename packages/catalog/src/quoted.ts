/** Quotes values in error messages. */

const QUOTED_LENGTH = 80;

/**
 * Matches control characters, line separators, and characters that change the direction of text. With the last kind, one name could look like
 * another. Source: Unicode Standard Annex #9, section 2, explicit directional formatting characters.
 */
export const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;

export function quoted(text: string): string {
  return JSON.stringify(shortened(text)).replace(UNPRINTABLE, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

export function shortened(text: string): string {
  // A character has at most two code units. Text of megabytes is cut before it becomes an array of characters.
  const characters = [...text.slice(0, 2 * QUOTED_LENGTH + 1)];
  return characters.length > QUOTED_LENGTH ? `${characters.slice(0, QUOTED_LENGTH).join('')}…` : text;
}
