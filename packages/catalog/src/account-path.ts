/** Accounts that no HTTP address can have: between slashes these are the folder itself and the one above, however they are written. */
export const NO_ACCOUNT_PATH = /^\.{0,2}$/;
