/**
 * Accounts that no HTTP address can have: between slashes these are the folder itself and the one above, however they are written.
 * In a file of its own, because an emitter loads it with its door for HTTP alone.
 */
export const NO_ACCOUNT_PATH = /^\.{0,2}$/;
