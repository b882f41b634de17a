/** Serves the messenger under `/app/`: known names only, from memory (decision 0045). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  fileHeaders,
  guardHeaders,
  pagePolicy,
  pickEncoding,
  type ServedFile,
  type WebApp,
} from '../web/index.ts';

/** Where the messenger is, on the host and not after a base address: the service worker's scope. */
const appPath = '/app/';

const headers = { ...guardHeaders, 'content-security-policy': pagePolicy.join('; ') };

/** Whether `If-None-Match` names the tag. Compressing proxies make tags weak. */
function hasTag(known = '', tag: string): boolean {
  const tags = known.split(',').map((each) => each.trim().replace(/^W\//, ''));
  return tags.includes(tag) || tags.includes('*');
}

/**
 * Adds `/app/`, its files and its `config.json`.
 *
 * @param charge subtracts what the bytes of an answer cost from the allowance of the caller's address; throws if it is
 *   used up
 */
export function addWebRoutes(
  app: FastifyInstance,
  web: WebApp,
  charge: (request: FastifyRequest, bytes: number) => void,
): void {
  const route = (url: string, answer: (request: FastifyRequest, reply: FastifyReply) => unknown) =>
    app.route({
      method: ['GET', 'HEAD'],
      url,
      handler: async (request, reply) => {
        return answer(request, reply.headers(headers));
      },
    });
  route(appPath.slice(0, -1), (request, reply) => {
    charge(request, 0);
    return reply.redirect(appPath, 308);
  });
  route(`${appPath}config.json`, async (request, reply) => {
    const config = Buffer.from(await web.config());
    charge(request, request.method === 'HEAD' ? 0 : config.length);
    return reply.header('cache-control', 'no-cache').type('application/json').send(config);
  });
  const send = (request: FastifyRequest, reply: FastifyReply, file: ServedFile | undefined) => {
    if (file === undefined) return reply.callNotFound();
    const encoding = pickEncoding(file, request.headers['accept-encoding']);
    const body = file.bodies.get(encoding) as Buffer;
    const own = fileHeaders(file, encoding);
    const isKnown = hasTag(request.headers['if-none-match'], own.etag);
    charge(request, isKnown || request.method === 'HEAD' ? 0 : body.length);
    reply.headers(own);
    if (isKnown) return reply.code(304).send();
    reply.type(file.type).header('content-length', body.length);
    return reply.send(request.method === 'HEAD' ? null : body);
  };
  route(appPath, (request, reply) => send(request, reply, web.files.get('index.html')));
  route(`${appPath}:name`, (request, reply) => {
    const { name } = request.params as { readonly name: string };
    return send(request, reply, web.files.get(name));
  });
}
