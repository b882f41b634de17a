import { once } from 'node:events';
import { type ClientOptions, WebSocket } from 'ws';
import { type Check, ok } from './check.ts';

/** Whether a WebSocket opens at the public address: proxies often need a setting for that. */
export const publicWebSocket: Check = {
  name: 'public websocket',
  scope: 'network',
  needs: ['descriptor'],
  cure: 'let the proxy pass the upgrade to WebSocket on, or correct public.wss',
  async find(relay, signal) {
    const { endpoints } = await relay.descriptor;
    const address = endpoints.find((item) => item.startsWith('wss:')) as string;
    const secureContext = await relay.secureContext;
    // The library passes the options of `tls.connect` on.
    const options: ClientOptions & { lookup: unknown } = {
      ...{ perMessageDeflate: false, lookup: relay.filter.lookup },
      ...(secureContext !== undefined && { secureContext }),
    };
    const socket = new WebSocket(address, options);
    socket.on('error', () => {});
    try {
      await once(socket, 'open', { signal });
      return ok(`opens at ${address}`);
    } finally {
      socket.terminate();
    }
  },
};
