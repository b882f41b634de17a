/** What a relay serves besides methods: a page for people, and its methods for programs. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { FrontPages } from '../about/index.ts';

/** For how long a browser or proxy may keep them. */
const cacheControl = 'max-age=300';

/** Whether the caller takes HTML: browsers say so, programs that call methods do not. */
const takesHtml = (accept = '') => /\btext\/html\b|\*\/\*/.test(accept);

/**
 * Adds `/`, `/openrpc.json` and `/openapi.json` of the host, not of a base address. Without `Accept`
 * for HTML, `/` stays a path that no method has.
 *
 * @param charge subtracts what the bytes of an answer cost from the allowance of the caller's address; throws if it is
 *   used up
 */
export function addPageRoutes(
  app: FastifyInstance,
  pages: FrontPages,
  charge: (request: FastifyRequest, bytes: number) => void,
): void {
  const route = (url: string, type: string, text: () => string) => {
    app.get(url, async (request, reply) => {
      if (url === '/' && !takesHtml(request.headers.accept)) return reply.callNotFound();
      const body = text();
      charge(request, body.length);
      return reply
        .headers({ ...pages.headers, 'cache-control': cacheControl, vary: 'accept' })
        .type(type)
        .send(body);
    });
  };
  route('/', 'text/html; charset=utf-8', () => pages.page());
  route('/openrpc.json', 'application/json', () => pages.openRpc());
  route('/openapi.json', 'application/json', () => pages.openApi());
}
