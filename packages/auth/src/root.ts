/** The user that may do everything as soon as it has the role of the same name. */
export const ROOT = 'root';
