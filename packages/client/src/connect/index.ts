export { defaultRetry, type RetryPolicy } from './backoff.ts';
export type { HttpRequest, HttpResponse, Socket, SocketEvents, Transport } from './transport.ts';
export { webTransport } from './web-transport.ts';
