//! A template's syntax tree with every operation that makes a value sent through a check. The
//! language itself bounds instructions only: a text doubled 34 times is a hundred of them.
//!
//! ```text
//! a ~ b, a + b, a * b     become filters of these names, which look at a and b before
//! calls, filters, slices, lists, comparisons …      x  becomes  x | checked
//! {% set ns.a = x %}      x  becomes  x | stored
//! text between tags       becomes an expression, so that it is counted where it is written
//! ```
//!
//! Nothing is folded into constants by the compiler this way either. The names have characters in
//! them that no template can write.

use minijinja::machinery::ast::{self, BinOpKind, CallArg, Expr, Spanned, Stmt};
use minijinja::machinery::{CodeGenerator, Instructions, Span, Token, parse, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Error, ErrorKind, Value};
use std::collections::BTreeMap;

/// Words and signs in one tag.
const TAG_TOKENS_MAX: usize = 4096;
/// Filters that the operators become.
pub(super) const ADD: &str = "+";
pub(super) const MULTIPLY: &str = "*";
pub(super) const CONCAT: &str = "~";
/// Filters that look at what was made.
pub(super) const CHECKED: &str = "=checked";
pub(super) const STORED: &str = "=stored";

/// A template ready to run.
pub(super) struct Compiled<'s> {
    pub(super) instructions: Instructions<'s>,
    pub(super) blocks: BTreeMap<&'s str, Instructions<'s>>,
}

/// Compiles `source`, every operation checked.
pub(super) fn compile<'s>(
    name: &'s str,
    source: &'s str,
    syntax: SyntaxConfig,
) -> Result<Compiled<'s>, Error> {
    check_tags(source, syntax.clone())?;
    let tree = stmt(&parse(source, name, syntax)?)?;
    let mut generator = CodeGenerator::new(name, source);
    generator.compile_stmt(&tree);
    let (instructions, blocks) = generator.finish();
    Ok(Compiled { instructions, blocks })
}

/// The compiler takes time with the square of a chain of operators, which is one tag.
fn check_tags(source: &str, syntax: SyntaxConfig) -> Result<(), Error> {
    let mut tokens = 0;
    for token in tokenize(source, false, syntax) {
        tokens = match token?.0 {
            Token::VariableStart | Token::BlockStart => 0,
            _ => tokens + 1,
        };
        if tokens > TAG_TOKENS_MAX {
            let words = format!("a tag of more than {TAG_TOKENS_MAX} words and signs");
            return Err(Error::new(ErrorKind::SyntaxError, words));
        }
    }
    Ok(())
}

fn stmts<'s>(all: &[Stmt<'s>]) -> Result<Vec<Stmt<'s>>, Error> {
    all.iter().map(stmt).collect()
}

fn stmt<'s>(from: &Stmt<'s>) -> Result<Stmt<'s>, Error> {
    Ok(match from {
        Stmt::Template(s) => Stmt::Template(at(ast::Template { children: stmts(&s.children)? }, s)),
        Stmt::EmitExpr(s) => Stmt::EmitExpr(at(ast::EmitExpr { expr: expr(&s.expr) }, s)),
        Stmt::EmitRaw(s) => {
            let raw = Expr::Const(at(ast::Const { value: Value::from(s.raw) }, s));
            Stmt::EmitExpr(at(ast::EmitExpr { expr: checked(raw, s.span()) }, s))
        }
        Stmt::ForLoop(s) => Stmt::ForLoop(for_loop(s)?),
        Stmt::IfCond(s) => Stmt::IfCond(at(
            ast::IfCond {
                expr: expr(&s.expr),
                true_body: stmts(&s.true_body)?,
                false_body: stmts(&s.false_body)?,
            },
            s,
        )),
        Stmt::WithBlock(s) => {
            let assign = |(to, value): &(Expr<'s>, Expr<'s>)| (target(to), expr(value));
            let assignments = s.assignments.iter().map(assign).collect();
            Stmt::WithBlock(at(ast::WithBlock { assignments, body: stmts(&s.body)? }, s))
        }
        Stmt::Set(s) => {
            let value = match s.target {
                Expr::Var(_) => expr(&s.expr),
                _ => filtered(STORED, expr(&s.expr), Vec::new(), s.expr.span()),
            };
            Stmt::Set(at(ast::Set { target: target(&s.target), expr: value }, s))
        }
        Stmt::SetBlock(s) => Stmt::SetBlock(at(
            ast::SetBlock {
                target: target(&s.target),
                filter: s.filter.as_ref().map(expr),
                body: stmts(&s.body)?,
            },
            s,
        )),
        Stmt::AutoEscape(s) => Stmt::AutoEscape(at(
            ast::AutoEscape { enabled: expr(&s.enabled), body: stmts(&s.body)? },
            s,
        )),
        Stmt::FilterBlock(s) => Stmt::FilterBlock(at(
            ast::FilterBlock { filter: expr(&s.filter), body: stmts(&s.body)? },
            s,
        )),
        Stmt::Macro(s) => Stmt::Macro(macro_of(s)?),
        Stmt::CallBlock(s) => Stmt::CallBlock(at(
            ast::CallBlock { call: call(&s.call), macro_decl: macro_of(&s.macro_decl)? },
            s,
        )),
        Stmt::Do(s) => Stmt::Do(at(ast::Do { call: call(&s.call) }, s)),
        Stmt::Continue(s) => Stmt::Continue(at(ast::Continue, s)),
        Stmt::Break(s) => Stmt::Break(at(ast::Break, s)),
        Stmt::Block(_)
        | Stmt::Extends(_)
        | Stmt::Include(_)
        | Stmt::Import(_)
        | Stmt::FromImport(_) => {
            let words = "a chat template stands alone: blocks, includes and imports have no use";
            return Err(Error::new(ErrorKind::SyntaxError, words));
        }
    })
}

fn for_loop<'s>(from: &Spanned<ast::ForLoop<'s>>) -> Result<Spanned<ast::ForLoop<'s>>, Error> {
    let node = ast::ForLoop {
        target: target(&from.target),
        iter: expr(&from.iter),
        filter_expr: from.filter_expr.as_ref().map(expr),
        recursive: from.recursive,
        body: stmts(&from.body)?,
        else_body: stmts(&from.else_body)?,
    };
    Ok(at(node, from))
}

fn macro_of<'s>(from: &Spanned<ast::Macro<'s>>) -> Result<Spanned<ast::Macro<'s>>, Error> {
    let args = from.args.iter().map(target).collect();
    let defaults = from.defaults.iter().map(expr).collect();
    Ok(at(ast::Macro { name: from.name, args, defaults, body: stmts(&from.body)? }, from))
}

/// What is assigned to: names, several at once, or an attribute of a namespace.
fn target<'s>(from: &Expr<'s>) -> Expr<'s> {
    match from {
        Expr::Var(e) => Expr::Var(at(ast::Var { id: e.id }, e)),
        Expr::List(e) => {
            Expr::List(at(ast::List { items: e.items.iter().map(target).collect() }, e))
        }
        Expr::Tuple(e) => {
            Expr::Tuple(at(ast::Tuple { items: e.items.iter().map(target).collect() }, e))
        }
        Expr::GetAttr(e) => {
            Expr::GetAttr(at(ast::GetAttr { expr: target(&e.expr), name: e.name }, e))
        }
        other => expr(other),
    }
}

fn expr<'s>(from: &Expr<'s>) -> Expr<'s> {
    let all = |items: &[Expr<'s>]| items.iter().map(expr).collect();
    let made = |made: Expr<'s>| checked(made, from.span());
    match from {
        Expr::Var(e) => Expr::Var(at(ast::Var { id: e.id }, e)),
        Expr::Const(e) => Expr::Const(at(ast::Const { value: e.value.clone() }, e)),
        Expr::Slice(e) => made(Expr::Slice(at(
            ast::Slice {
                expr: expr(&e.expr),
                start: e.start.as_ref().map(expr),
                stop: e.stop.as_ref().map(expr),
                step: e.step.as_ref().map(expr),
            },
            e,
        ))),
        Expr::UnaryOp(e) => {
            let is_not = matches!(e.op, ast::UnaryOpKind::Not);
            let op = if is_not { ast::UnaryOpKind::Not } else { ast::UnaryOpKind::Neg };
            Expr::UnaryOp(at(ast::UnaryOp { op, expr: expr(&e.expr) }, e))
        }
        Expr::BinOp(e) => operator(e),
        Expr::Compare(e) => {
            let op = |op: &ast::CompareOp<'s>| ast::CompareOp { op: op.op, expr: expr(&op.expr) };
            let ops = e.ops.iter().map(op).collect();
            made(Expr::Compare(at(ast::Compare { expr: expr(&e.expr), ops }, e)))
        }
        Expr::IfExpr(e) => Expr::IfExpr(at(
            ast::IfExpr {
                test_expr: expr(&e.test_expr),
                true_expr: expr(&e.true_expr),
                false_expr: e.false_expr.as_ref().map(expr),
            },
            e,
        )),
        Expr::Filter(e) => {
            let (value, args) = (e.expr.as_ref().map(expr), arguments(&e.args));
            made(Expr::Filter(at(ast::Filter { name: e.name, expr: value, args }, e)))
        }
        Expr::Test(e) => {
            let (value, args) = (expr(&e.expr), arguments(&e.args));
            made(Expr::Test(at(ast::Test { name: e.name, expr: value, args }, e)))
        }
        Expr::GetAttr(e) => {
            Expr::GetAttr(at(ast::GetAttr { expr: expr(&e.expr), name: e.name }, e))
        }
        Expr::GetItem(e) => {
            let (value, key) = (expr(&e.expr), expr(&e.subscript_expr));
            made(Expr::GetItem(at(ast::GetItem { expr: value, subscript_expr: key }, e)))
        }
        Expr::Call(e) => made(Expr::Call(call(e))),
        Expr::List(e) => made(Expr::List(at(ast::List { items: all(&e.items) }, e))),
        Expr::Tuple(e) => made(Expr::Tuple(at(ast::Tuple { items: all(&e.items) }, e))),
        Expr::Map(e) => {
            made(Expr::Map(at(ast::Map { keys: all(&e.keys), values: all(&e.values) }, e)))
        }
    }
}

fn operator<'s>(from: &Spanned<ast::BinOp<'s>>) -> Expr<'s> {
    let (left, right) = (expr(&from.left), expr(&from.right));
    let name = match from.op {
        BinOpKind::Add => ADD,
        BinOpKind::Mul => MULTIPLY,
        BinOpKind::Concat => CONCAT,
        op => {
            let plain = Expr::BinOp(at(ast::BinOp { op, left, right }, from));
            // What is not evaluated when the left side decides is not looked at either.
            return match op {
                BinOpKind::ScAnd | BinOpKind::ScOr => plain,
                _ => checked(plain, from.span()),
            };
        }
    };
    filtered(name, left, vec![CallArg::Pos(right)], from.span())
}

fn call<'s>(from: &Spanned<ast::Call<'s>>) -> Spanned<ast::Call<'s>> {
    // A method's name is part of what is called, and stays there.
    let callee = match &from.expr {
        Expr::GetAttr(e) => {
            Expr::GetAttr(at(ast::GetAttr { expr: expr(&e.expr), name: e.name }, e))
        }
        other => expr(other),
    };
    at(ast::Call { expr: callee, args: arguments(&from.args) }, from)
}

fn arguments<'s>(all: &[CallArg<'s>]) -> Vec<CallArg<'s>> {
    let argument = |from: &CallArg<'s>| match from {
        CallArg::Pos(e) => CallArg::Pos(expr(e)),
        CallArg::Kwarg(name, e) => CallArg::Kwarg(name, expr(e)),
        CallArg::PosSplat(e) => CallArg::PosSplat(expr(e)),
        CallArg::KwargSplat(e) => CallArg::KwargSplat(expr(e)),
    };
    all.iter().map(argument).collect()
}

fn checked<'s>(value: Expr<'s>, span: Span) -> Expr<'s> {
    filtered(CHECKED, value, Vec::new(), span)
}

fn filtered<'s>(
    name: &'static str,
    value: Expr<'s>,
    args: Vec<CallArg<'s>>,
    span: Span,
) -> Expr<'s> {
    Expr::Filter(Spanned::new(ast::Filter { name, expr: Some(value), args }, span))
}

/// `node` where `from` was.
fn at<T, F>(node: T, from: &Spanned<F>) -> Spanned<T> {
    Spanned::new(node, from.span())
}
