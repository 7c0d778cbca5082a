import { type DeclaredMethod, type MethodDeclaration, method } from '../../rpc/method.ts';
import { packBody } from '../codec/library-pack.ts';

/** A method that is not on the hot path: msgpackr packs its messages. */
export function rareMethod<Request, Reply>(
  name: string,
  declaration: MethodDeclaration<Request, Reply>,
): DeclaredMethod<Request, Reply> {
  return method(name, { ...declaration, pack: packBody });
}
