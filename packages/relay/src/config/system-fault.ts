/** Errors of the operating system in words, with what to do: mostly of a start that fails. */

type SystemError = NodeJS.ErrnoException & {
  readonly address?: string;
  readonly port?: number;
  readonly hostname?: string;
};

/** What the system refuses of a file or folder, by the error's code. */
const ofFiles: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file: correct the path',
  ENOTDIR: 'a file has the place of a folder: correct the path',
  EISDIR: 'is a folder: give the path of a file',
  EACCES:
    'this user may not use it: run the command as the user of the relay, or give it to that user (chown)',
  EPERM:
    'the system does not allow this: run the command as the user of the relay, or give it to that user (chown)',
  EROFS: 'its file system is read-only: mount it writable, or choose a folder on another one',
  ENOSPC: 'its disk is full: make room',
  EDQUOT: 'the quota of this user is used up: make room',
  EMFILE: 'this process has too many open files: raise the limit (`LimitNOFILE`, `ulimit -n`)',
};

/** Ports below this one are for privileged users. */
const firstFreePort = 1_024;

/**
 * Says what the system refused, and what to do: one sentence without its full stop. Returns
 * `undefined` for any other error, whose message stands for itself.
 *
 * @example
 * systemFault(await listen('127.0.0.1:443').catch((error) => error));
 * // '127.0.0.1:443: another process listens there: stop it, or choose another port'
 */
export function systemFault(error: unknown): string | undefined {
  const { code, syscall, path } = error as SystemError;
  if (code === undefined || syscall === undefined) return undefined;
  if (syscall === 'listen' || syscall === 'bind') return ofAddress(error as SystemError);
  if (syscall === 'getaddrinfo') {
    const { hostname = '' } = error as SystemError;
    return `${hostname}: the name leads to no address (${code}): correct the host, or DNS`;
  }
  // The parent is there: the file system has no entries for new folders.
  const isNoPlace = syscall === 'mkdir' && code === 'ENOENT';
  const words = isNoPlace ? 'no folder can be made there: choose another place' : ofFiles[code];
  return path === undefined || words === undefined ? undefined : `${path}: ${words}`;
}

function ofAddress({ code = '', address = '', port, message }: SystemError): string {
  const host = address.includes(':') ? `[${address}]` : address;
  const at = port === undefined || port < 0 ? host : `${host}:${port}`;
  switch (code) {
    case 'EADDRINUSE':
      return `${at}: another process listens there: stop it, or choose another port`;
    case 'EADDRNOTAVAIL':
      return `${at}: this machine does not have the address: choose one of its own, or 0.0.0.0 for all`;
    case 'EACCES':
    case 'EPERM':
      return (port ?? firstFreePort) < firstFreePort
        ? `${at}: this user may not listen on ports below ${firstFreePort}: choose a higher port behind a proxy, or give the service CAP_NET_BIND_SERVICE (AmbientCapabilities in its unit)`
        : `${at}: the system does not let this user listen there: choose another port`;
    default:
      return message;
  }
}
