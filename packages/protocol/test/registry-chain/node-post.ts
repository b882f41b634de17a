/** Sends requests to nodes with `node:http`, and tells new connections. */
import { Agent, request } from 'node:http';
import type { NodePost } from '../../src/index.ts';

export function nodePost(timeout = 10_000): { readonly post: NodePost } & Disposable {
  const agent = new Agent({ keepAlive: true });
  const post: NodePost = ({ url, body, maxBytes, signal }) =>
    new Promise((resolve, reject) => {
      const time = AbortSignal.timeout(timeout);
      const ended = signal === undefined ? time : AbortSignal.any([signal, time]);
      const sent = request(url, { method: 'POST', agent, signal: ended });
      sent.on('error', reject).on('response', (response) => {
        const chunks: Buffer[] = [];
        let length = 0;
        response.on('data', (chunk: Buffer) => {
          length += chunk.length;
          if (length > maxBytes) response.destroy(new Error('too many bytes'));
          chunks.push(chunk);
        });
        response.on('error', reject).on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            body: Buffer.concat(chunks),
            isNewConnection: !sent.reusedSocket,
          }),
        );
      });
      sent.end(body);
    });
  return { post, [Symbol.dispose]: () => agent.destroy() };
}
