import { lookup } from 'node:dns';
import { connect, isIP, type LookupFunction, type Socket } from 'node:net';
import { PeerError } from './errors.ts';

/** Where to connect to, and whether an IP address may be dialled. */
export interface DialOptions {
  readonly host: string;
  readonly port: number;
  readonly mayDial: (address: string) => boolean;
}

/** Opens a TCP connection; when the signal aborts, also later, its socket is destroyed. */
export async function dialSocket(options: DialOptions, signal: AbortSignal): Promise<Socket> {
  const { host, port, mayDial } = options;
  if (isIP(host) !== 0 && !mayDial(host)) {
    throw new PeerError('unreachable', `the address ${host} must not be dialled`);
  }
  const socket = connect({ host, port, noDelay: true, lookup: filteredLookup(mayDial) });
  const abort = () => socket.destroy();
  signal.addEventListener('abort', abort, { once: true });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
      socket.once('close', () => reject(new Error('the connection was given up')));
    });
    return socket;
  } catch (cause) {
    socket.destroy();
    signal.throwIfAborted();
    throw new PeerError('unreachable', (cause as Error).message, { cause });
  }
}

/** Resolves names and leaves out addresses that must not be dialled, whatever DNS answers. */
function filteredLookup(mayDial: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      const allowed = (addresses ?? []).filter(({ address }) => mayDial(address));
      const [first] = allowed;
      if (error !== null || first === undefined) {
        const fault = error ?? new Error(`${hostname} has no address that may be dialled`);
        callback(fault, '', 0);
      } else if (options.all === true) {
        callback(null, allowed);
      } else {
        callback(null, first.address, first.family);
      }
    });
  };
}
