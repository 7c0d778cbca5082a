/**
 * Modes of the files that this program writes: accessible only to its own user. Data directories, logs, backups and
 * journals contain values, tokens, and the incarnations by which nodes know each other.
 */
export const OWN_DIR_MODE = 0o700;
export const OWN_FILE_MODE = 0o600;
/**
 * For a process some of whose files are written by libraries: LevelDB chooses 0644 and leaves the rest to the umask.
 */
export const OWN_UMASK = 0o077;
