#pragma once

#include <cstddef>
#include <functional>
#include <new>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace duet::base {

template <typename Signature>
class UniqueFunction;

/// A function object that owns what it calls and moves, but does not copy: it may hold a std::unique_ptr or a Reply.
///
/// Callables of up to three words are held inside, without an allocation. As with std::function, a call of an empty one
/// throws std::bad_function_call. C++23 has it as std::move_only_function.
template <typename Result, typename... Arguments>
class UniqueFunction<Result(Arguments...)> {
 public:
  UniqueFunction() = default;
  UniqueFunction(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as std::function

  // NOLINTBEGIN(google-explicit-constructor,bugprone-forwarding-reference-overload): as std::function
  template <typename Callable>
  requires(!std::is_same_v<std::remove_cvref_t<Callable>, UniqueFunction> &&
           std::is_invocable_r_v<Result, std::decay_t<Callable>&, Arguments...>) UniqueFunction(Callable&& callable) {
    // NOLINTEND(google-explicit-constructor,bugprone-forwarding-reference-overload)
    using Held = Holder<std::decay_t<Callable>>;
    Held::make(storage_, std::forward<Callable>(callable));
    actions_ = &Held::actions;
  }

  UniqueFunction(UniqueFunction&& other) noexcept { move_from(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this == &other) return *this;
    reset();
    move_from(other);
    return *this;
  }
  ~UniqueFunction() { reset(); }

  explicit operator bool() const { return actions_ != nullptr; }

  Result operator()(Arguments... arguments) {
    if (actions_ == nullptr) throw std::bad_function_call();
    return actions_->call(storage_, std::forward<Arguments>(arguments)...);
  }

  /// The type of what it calls; of what that calls in turn if it is a std::function. `void` if it is empty.
  const std::type_info& target_type() const { return actions_ == nullptr ? typeid(void) : actions_->type(storage_); }

 private:
  static constexpr std::size_t room = 3 * sizeof(void*);
  struct Storage {
    alignas(void*) std::byte bytes[room];
  };
  struct Actions {
    Result (*call)(Storage&, Arguments&&...);
    void (*move)(Storage& from, Storage& to) noexcept;  // null: its bytes are copied
    void (*destroy)(Storage&) noexcept;                 // null: there is nothing to do
    const std::type_info& (*type)(const Storage&);
  };

  template <typename Callable>
  struct Holder {
    static constexpr bool inside = sizeof(Callable) <= room && alignof(Callable) <= alignof(Storage) &&
                                   std::is_nothrow_move_constructible_v<Callable>;

    template <typename Source>
    static void make(Storage& storage, Source&& source) {
      if constexpr (inside) {
        ::new (storage.bytes) Callable(std::forward<Source>(source));
      } else {
        ::new (storage.bytes) Callable*(new Callable(std::forward<Source>(source)));
      }
    }
    static Callable& held(Storage& storage) {
      if constexpr (inside) {
        return *std::launder(reinterpret_cast<Callable*>(storage.bytes));
      } else {
        return **std::launder(reinterpret_cast<Callable**>(storage.bytes));
      }
    }
    static Result call(Storage& storage, Arguments&&... arguments) {
      if constexpr (std::is_void_v<Result>) {
        std::invoke(held(storage), std::forward<Arguments>(arguments)...);
      } else {
        return std::invoke(held(storage), std::forward<Arguments>(arguments)...);
      }
    }
    static void move(Storage& from, Storage& to) noexcept {
      ::new (to.bytes) Callable(std::move(held(from)));
      held(from).~Callable();
    }
    static void destroy(Storage& storage) noexcept {
      if constexpr (inside) {
        held(storage).~Callable();
      } else {
        delete &held(storage);
      }
    }
    static const std::type_info& type(const Storage& storage) {
      if constexpr (requires(const Callable& callable) { callable.target_type(); }) {
        return held(const_cast<Storage&>(storage)).target_type();
      } else {
        return typeid(Callable);
      }
    }
    static constexpr auto move_action() {
      if constexpr (inside && !std::is_trivially_copyable_v<Callable>) {
        return &move;
      } else {
        return nullptr;
      }
    }
    static constexpr Actions actions{call, move_action(),
                                     inside&& std::is_trivially_destructible_v<Callable> ? nullptr : &destroy, type};
  };

  void move_from(UniqueFunction& other) noexcept {
    actions_ = std::exchange(other.actions_, nullptr);
    if (actions_ != nullptr && actions_->move != nullptr) return actions_->move(other.storage_, storage_);
    storage_ = other.storage_;
  }
  void reset() noexcept {
    // First it is empty: what is destroyed may look at us.
    const Actions* const actions = std::exchange(actions_, nullptr);
    if (actions != nullptr && actions->destroy != nullptr) actions->destroy(storage_);
  }

  const Actions* actions_ = nullptr;
  Storage storage_ = {};  // not for us: g++ warns of bytes that are copied before they were written
};

}  // namespace duet::base
