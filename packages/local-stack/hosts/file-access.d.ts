/** See file-access.js. */
export declare function canLimitFileAccess(): boolean;
